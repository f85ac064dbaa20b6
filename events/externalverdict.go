package events

import (
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// ExternalVerdict is the data of TypeChangePodVerdict as the server
// posts it to the callback, with the server's ids and pod names. By the
// node id the callback finds the ChangePod and forwards a ChangePodVerdict,
// or it finds the ChangeWorkload and forwards an OrderVerdict.
type ExternalVerdict struct {
	// BizExecOrderID is the id of the order; at most 128 bytes.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the id of the order node; at most 128 bytes.
	NodeID string `json:"nodeId"`
	// Stage is PRE or POST.
	Stage v1alpha1.Stage `json:"stage"`
	// Verdict applies to the whole batch or order; see v1alpha1.ParseVerdict. At
	// most 63 bytes.
	Verdict string `json:"verdict"`
	// Message is the reason, for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
	// PodResults are verdicts for single pods, at most one a pod: pod, verdict
	// and message. Verdict applies to pods without a result.
	PodResults []v1alpha1.PodSummary `json:"podResults,omitempty"`
}

// Validate returns an error that names the field.
func (v ExternalVerdict) Validate() error {
	var c checker
	checkVerdict(&c, v)
	return c.err()
}

// truncated returns the verdict with messages of at most limit bytes. It drops redundant results,
// which changes no outcome, if there are more than maxResults or if limit is 0. If a fail would have
// more than maxResults even then, its results that deviate are dropped before, and so its fails are kept.
func (v ExternalVerdict) truncated(limit int) ExternalVerdict {
	v.Message = text.Truncate(v.Message, limit)
	v.PodResults = truncatedResults(v.PodResults, limit)
	if len(withoutRedundant(v.PodResults, v.Verdict)) > maxResults {
		v.PodResults = failsOnly(v.PodResults, v.Verdict)
	}
	if limit == 0 || len(v.PodResults) > maxResults {
		v.PodResults = withoutRedundant(v.PodResults, v.Verdict)
	}
	return v
}
