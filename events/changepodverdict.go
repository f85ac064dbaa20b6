package events

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// ChangePodVerdict is the data of TypeChangePodVerdict inside the cluster. The
// server sends a verdict only once.
type ChangePodVerdict struct {
	// Namespace, Name and UID are the ChangePod's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// ChangeWorkload is the name of the owner.
	ChangeWorkload string `json:"changeWorkload"`
	Version        string `json:"version"`
	// BizExecOrderID is the id of the order.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the id of the batch's order node.
	NodeID string         `json:"nodeId"`
	Stage  v1alpha1.Stage `json:"stage"`
	// Verdict is the verdict as received, which may be empty or unknown; see
	// v1alpha1.ParseVerdict. At most 63 bytes.
	Verdict string `json:"verdict"`
	// WithoutRules, `unjudged` in JSON, marks a pass without rules.
	WithoutRules bool `json:"unjudged,omitempty"`
	// Message is the reason, for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
	// PodResults are verdicts for single pods: pod, uid, verdict and message;
	// New drops the other fields. The verdict of the stage applies to pods
	// without a result, so if not all results fit, New drops those that agree
	// with the stage, except the first. If a fail still does not fit, New drops its other
	// results instead, so their pods fail as well.
	PodResults []v1alpha1.PodSummary `json:"podResults,omitempty"`
	// Time is the time of receipt.
	Time metav1.MicroTime `json:"time"`
	// ChangePod is a copy of the object, if it is small and the sender has it.
	ChangePod *v1alpha1.ChangePod `json:"changePod,omitempty"`
}

var _ Data = ChangePodVerdict{}

// Type implements Data.
func (ChangePodVerdict) Type() string { return TypeChangePodVerdict }

// ID implements Data. Another verdict, or other pods that deviate from it, is
// another fact; another message or time is not.
func (d ChangePodVerdict) ID() string {
	id := string(d.UID) + "/" + d.Version + "/" + string(d.Stage) + "/" + segment(d.NodeID) + "/" + segment(d.Verdict)
	if more := hashResults(d.PodResults, d.Verdict); more != "" {
		id += "/" + more
	}
	return id
}

// Source implements Data: the ChangePod.
func (d ChangePodVerdict) Source() string { return pathOfChange("changepods", d.Namespace, d.Name) }

// Subject implements Data: the ChangePod.
func (d ChangePodVerdict) Subject() string { return d.Name }

// Validate implements Data.
func (d ChangePodVerdict) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.name("changeWorkload", d.ChangeWorkload)
	c.version(d.Version)
	checkVerdict(&c, d.external())
	c.changePodCopy(d.ChangePod, d.Namespace, d.Name, d.UID)
	if d.Time.IsZero() {
		c.required("time", "", 0)
	}
	return c.err()
}

// Inbox returns the verdict as an entry of a ChangeWorkload's inbox.
func (d ChangePodVerdict) Inbox() v1alpha1.InboxVerdict {
	external := d.external().truncated(MaxText)
	return v1alpha1.InboxVerdict{
		ID:           d.ID(),
		NodeID:       d.NodeID,
		Stage:        d.Stage,
		Verdict:      d.Verdict,
		WithoutRules: d.WithoutRules,
		Message:      external.Message,
		PodResults:   external.PodResults,
		Time:         d.Time,
	}
}

// external returns the part that the server sent.
func (d ChangePodVerdict) external() ExternalVerdict {
	return ExternalVerdict{
		BizExecOrderID: d.BizExecOrderID,
		NodeID:         d.NodeID,
		Stage:          d.Stage,
		Verdict:        d.Verdict,
		Message:        d.Message,
		PodResults:     d.PodResults,
	}
}

func (d ChangePodVerdict) truncated(limit int) Data {
	external := d.external().truncated(limit)
	d.Message, d.PodResults = external.Message, external.PodResults
	return d
}
