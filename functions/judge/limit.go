package judge

import (
	"encoding/json"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxRecord is the maximum size of a record in bytes. A release of 1000 batches has as many
// records, which the controller keeps in memory.
const maxRecord = 32 << 10

// maxMessage is the maximum size of a message in the ChangePod in bytes.
const maxMessage = 1024

// limited returns a record of at most maxRecord. It omits the last metrics: failed metrics
// are first, so they are kept. While the analysis has not ended, it omits all evidence: each look
// reads all samples again, and the write of each look stays small.
func limited(r judgev1alpha1.Record) judgev1alpha1.Record {
	r.Message = text.Truncate(r.Message, maxMessage)
	if !r.Final {
		r.Metrics = nil
	}
	for len(r.Metrics) > 0 {
		raw, err := json.Marshal(r)
		if err != nil || len(raw) <= maxRecord {
			break
		}
		r.Metrics = r.Metrics[:len(r.Metrics)-1]
	}
	return r
}
