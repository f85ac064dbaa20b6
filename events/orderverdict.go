package events

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// OrderVerdict is the data of TypeOrderVerdict: the server's verdict on the order
// of a release as a whole. The server sends a verdict only once.
type OrderVerdict struct {
	// Namespace, Name and UID are the ChangeWorkload's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Version   string    `json:"version"`
	// BizExecOrderID is the id of the order.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the id of the order node of the order check.
	NodeID string         `json:"nodeId"`
	Stage  v1alpha1.Stage `json:"stage"`
	// Verdict is the verdict as received; see v1alpha1.ParseVerdict. At most 63
	// bytes.
	Verdict string `json:"verdict"`
	// WithoutRules, `unjudged` in JSON, marks a pass without rules.
	WithoutRules bool `json:"unjudged,omitempty"`
	// Message is the reason, for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
	// Time is the time of receipt.
	Time metav1.MicroTime `json:"time"`
}

var _ Data = OrderVerdict{}

// Type implements Data.
func (OrderVerdict) Type() string { return TypeOrderVerdict }

// ID implements Data. Another verdict is another fact; another message or time
// is not.
func (d OrderVerdict) ID() string {
	return string(d.UID) + "/" + d.Version + "/" + string(d.Stage) + "/" + segment(d.NodeID) + "/" + segment(d.Verdict)
}

// Source implements Data: the ChangeWorkload.
func (d OrderVerdict) Source() string { return pathOfChange("changeworkloads", d.Namespace, d.Name) }

// Subject implements Data: the ChangeWorkload.
func (d OrderVerdict) Subject() string { return d.Name }

// Validate implements Data.
func (d OrderVerdict) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.version(d.Version)
	checkVerdict(&c, d.external())
	if d.Time.IsZero() {
		c.required("time", "", 0)
	}
	return c.err()
}

// Inbox returns the verdict as an entry of the ChangeWorkload's inbox.
func (d OrderVerdict) Inbox() v1alpha1.InboxVerdict {
	return v1alpha1.InboxVerdict{
		ID: d.ID(), NodeID: d.NodeID, Stage: d.Stage, Verdict: d.Verdict, WithoutRules: d.WithoutRules,
		Message: text.Truncate(d.Message, MaxText), Time: d.Time,
	}
}

// external returns the part that the server sent.
func (d OrderVerdict) external() ExternalVerdict {
	return ExternalVerdict{
		BizExecOrderID: d.BizExecOrderID, NodeID: d.NodeID, Stage: d.Stage, Verdict: d.Verdict, Message: d.Message,
	}
}

func (d OrderVerdict) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}
