package events

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// ChangePodVerdict is the data of TypeChangePodVerdict inside the cluster: a
// fact from outside that will not come again.
type ChangePodVerdict struct {
	// Namespace, Name and UID are the ChangePod's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// ChangeWorkload is the name of its owner.
	ChangeWorkload string `json:"changeWorkload"`
	Version        string `json:"version"`
	// BizExecOrderID is the order that the verdict was given for.
	BizExecOrderID string `json:"bizExecOrderId"`
	// NodeID is the server's id of the batch that was judged.
	NodeID string         `json:"nodeId"`
	Stage  v1alpha1.Stage `json:"stage"`
	// Verdict is the word as it came, which may be empty or unknown; see
	// v1alpha1.ParseVerdict. At most 63 bytes.
	Verdict string `json:"verdict"`
	// Unjudged says that the verdict came with no rule.
	Unjudged bool `json:"unjudged,omitempty"`
	// Message is the reason, for people. New cuts it to MaxText bytes.
	Message string `json:"message,omitempty"`
	// PodResults are verdicts for single pods: pod, uid, verdict and message;
	// New leaves the rest of a summary out. A pod without one is meant by the
	// verdict of the stage, so where not all of them fit New leaves out those
	// that say the same, but for the first.
	PodResults []v1alpha1.PodSummary `json:"podResults,omitempty"`
	// Time is when the verdict came.
	Time metav1.MicroTime `json:"time"`
}

var _ Data = ChangePodVerdict{}

// Type implements Data.
func (ChangePodVerdict) Type() string { return TypeChangePodVerdict }

// ID implements Data. Another word, or pods of which something else is said
// than of the stage, are another fact; another message or time are not.
func (d ChangePodVerdict) ID() string {
	id := string(d.UID) + "/" + d.Version + "/" + string(d.Stage) + "/" + segment(d.NodeID) + "/" + segment(d.Verdict)
	if more := hashResults(d.PodResults, d.Verdict); more != "" {
		id += "/" + more
	}
	return id
}

// Source implements Data: the ChangePod.
func (d ChangePodVerdict) Source() string { return own("changepods", d.Namespace, d.Name) }

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
	checkVerdict(&c, d.said())
	if d.Time.IsZero() {
		c.required("time", "", 0)
	}
	return c.err()
}

// Inbox returns the verdict as it waits on a ChangeWorkload for a Broker.
func (d ChangePodVerdict) Inbox() v1alpha1.InboxVerdict {
	said := d.said().bounded(MaxText)
	return v1alpha1.InboxVerdict{
		ID:         d.ID(),
		NodeID:     d.NodeID,
		Stage:      d.Stage,
		Verdict:    d.Verdict,
		Unjudged:   d.Unjudged,
		Message:    said.Message,
		PodResults: said.PodResults,
		Time:       d.Time,
	}
}

// said is what the judge said.
func (d ChangePodVerdict) said() ExternalVerdict {
	return ExternalVerdict{
		BizExecOrderID: d.BizExecOrderID,
		NodeID:         d.NodeID,
		Stage:          d.Stage,
		Verdict:        d.Verdict,
		Message:        d.Message,
		PodResults:     d.PodResults,
	}
}

func (d ChangePodVerdict) bounded(limit int) Data {
	said := d.said().bounded(limit)
	d.Message, d.PodResults = said.Message, said.PodResults
	return d
}
