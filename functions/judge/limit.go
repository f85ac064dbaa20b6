package judge

import (
	"encoding/json"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxMetricBytes is the size of the metrics of a record above which metrics are omitted. A release can have
// 1000 batches, and the controller keeps their records in memory. The target is limited by maxPodNames.
const maxMetricBytes = 32 << 10

// maxMessage is the maximum size of a message in the ChangePod in bytes.
const maxMessage = 1024

// storable returns the record without the metrics above maxMetricBytes. It omits metrics from the end
// of the list, because failed metrics are first. Until the analysis has ended it omits all metrics:
// the next look reads all samples again, so they need not be stored.
func storable(r judgev1alpha1.Record) judgev1alpha1.Record {
	r.Message = text.Truncate(r.Message, maxMessage)
	if !r.Final {
		r.Metrics = nil
	}
	for len(r.Metrics) > 0 {
		raw, err := json.Marshal(r.Metrics)
		if err != nil || len(raw) <= maxMetricBytes {
			break
		}
		r.Metrics = r.Metrics[:len(r.Metrics)-1]
	}
	return r
}
