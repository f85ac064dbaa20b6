package events

import (
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// ExternalVerdict is the data of TypeChangePodVerdict as a judge outside the
// cluster posts it to the callback: it knows the server's ids and pods by
// name. The callback finds the ChangePod and sends a ChangePodVerdict on.
type ExternalVerdict struct {
	// BizExecOrderID is the order; at most 128 bytes.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the server's id of the batch; at most 128 bytes.
	NodeID string `json:"nodeId"`
	// Stage is PRE or POST.
	Stage v1alpha1.Stage `json:"stage"`
	// Verdict is the word for the whole batch; see v1alpha1.ParseVerdict. At
	// most 63 bytes.
	Verdict string `json:"verdict"`
	// Message is the reason, for people; longer than MaxText bytes it is cut.
	Message string `json:"message,omitempty"`
	// PodResults are words for single pods, each at most once: pod, verdict
	// and message. A pod without one is meant by Verdict.
	PodResults []v1alpha1.PodSummary `json:"podResults,omitempty"`
}

// Validate returns an error that names the field.
func (v ExternalVerdict) Validate() error {
	var c checker
	checkVerdict(&c, v)
	return c.err()
}

// bounded returns the verdict with no text longer than limit bytes. Results
// that are not essential are left out where all of them would be too many, or
// as the last means to fit: no outcome changes by that.
func (v ExternalVerdict) bounded(limit int) ExternalVerdict {
	v.Message = text.Truncate(v.Message, limit)
	v.PodResults = boundedResults(v.PodResults, limit)
	if limit == 0 || len(v.PodResults) > maxResults {
		v.PodResults = essential(v.PodResults, v.Verdict)
	}
	return v
}
