package events

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// OrderVerdict is the data of TypeOrderVerdict: what the server said of the
// order of a release as a whole, a fact from outside that will not come again.
type OrderVerdict struct {
	// Namespace, Name and UID are the ChangeWorkload's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Version   string    `json:"version"`
	// BizExecOrderID is the order.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the server's id of the check of the order as a whole.
	NodeID string         `json:"nodeId"`
	Stage  v1alpha1.Stage `json:"stage"`
	// Verdict is the word as it came; see v1alpha1.ParseVerdict. At most 63 bytes.
	Verdict string `json:"verdict"`
	// Unjudged says that the verdict came with no rule.
	Unjudged bool `json:"unjudged,omitempty"`
	// Message is the reason, for people. New cuts it to MaxText bytes.
	Message string `json:"message,omitempty"`
	// Time is when the verdict came.
	Time metav1.MicroTime `json:"time"`
}

var _ Data = OrderVerdict{}

// Type implements Data.
func (OrderVerdict) Type() string { return TypeOrderVerdict }

// ID implements Data. Another word is another fact; another message or time is not.
func (d OrderVerdict) ID() string {
	return string(d.UID) + "/" + d.Version + "/" + string(d.Stage) + "/" + segment(d.NodeID) + "/" + segment(d.Verdict)
}

// Source implements Data: the ChangeWorkload.
func (d OrderVerdict) Source() string { return own("changeworkloads", d.Namespace, d.Name) }

// Subject implements Data: the ChangeWorkload.
func (d OrderVerdict) Subject() string { return d.Name }

// Validate implements Data.
func (d OrderVerdict) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.version(d.Version)
	checkVerdict(&c, d.said())
	if d.Time.IsZero() {
		c.required("time", "", 0)
	}
	return c.err()
}

// Inbox returns the verdict as it waits on its ChangeWorkload for a Broker.
func (d OrderVerdict) Inbox() v1alpha1.InboxVerdict {
	return v1alpha1.InboxVerdict{
		ID: d.ID(), NodeID: d.NodeID, Stage: d.Stage, Verdict: d.Verdict, Unjudged: d.Unjudged,
		Message: text.Truncate(d.Message, MaxText), Time: d.Time,
	}
}

// said is what the judge said.
func (d OrderVerdict) said() ExternalVerdict {
	return ExternalVerdict{
		BizExecOrderID: d.BizExecOrderID, NodeID: d.NodeID, Stage: d.Stage, Verdict: d.Verdict, Message: d.Message,
	}
}

func (d OrderVerdict) bounded(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}
