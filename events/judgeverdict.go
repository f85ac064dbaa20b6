package events

import (
	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// JudgeExtension is the CloudEvents extension with the name of a judge: in
// TypeChangePodReady, the judge that is woken; in TypeChangePodVerdict, the judge that
// answers. A Trigger filters by it, so that each judge receives only its own wake-ups.
const JudgeExtension = "judge"

// JudgeVerdict is the data of TypeChangePodVerdict from a judge other than the server.
// It addresses the ChangePod itself, as its wake-up did, so it needs no id of the
// server. The judge signs the event with a key of its own.
type JudgeVerdict struct {
	// Namespace, Name and UID are the ChangePod's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Version and Attempt are those of the wake-up.
	Version string `json:"version"`
	Attempt int64  `json:"attempt"`
	// Judge is the name of the judge.
	Judge string `json:"judge"`
	// Stage is POST: the pods of a batch exist when it is judged.
	Stage v1alpha1.Stage `json:"stage"`
	// Verdict applies to the whole batch; see v1alpha1.ParseVerdict. At most 63
	// bytes.
	Verdict string `json:"verdict"`
	// Reason is a short word for programs, at most 128 bytes.
	Reason string `json:"reason,omitempty"`
	// Message is the reason, for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
	// Time is the time of the decision.
	Time metav1.MicroTime `json:"time"`
}

var _ Data = JudgeVerdict{}

// Type implements Data.
func (JudgeVerdict) Type() string { return TypeChangePodVerdict }

// ID implements Data. Another verdict is another fact; another message or time is not.
func (d JudgeVerdict) ID() string {
	return string(d.UID) + "/" + d.Version + "/" + string(d.Stage) + "/judge." + d.Judge + "/" + segment(d.Verdict)
}

// Source implements Data: the ChangePod.
func (d JudgeVerdict) Source() string { return pathOfChange("changepods", d.Namespace, d.Name) }

// Subject implements Data: the ChangePod.
func (d JudgeVerdict) Subject() string { return d.Name }

// Validate implements Data.
func (d JudgeVerdict) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.version(d.Version)
	c.attempt(d.Attempt)
	c.conforms("judge", d.Judge, validation.IsDNS1123Label)
	if d.Judge == v1alpha1.JudgeServer {
		c.invalid("judge", d.Judge, "is the AlterShield server, which answers by the callback")
	}
	if d.Stage != v1alpha1.StagePost {
		c.invalid("stage", d.Stage, "a judge other than the server answers POST")
	}
	c.optional("verdict", d.Verdict, maxShortText)
	c.optional("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	if d.Time.IsZero() {
		c.required("time", "", 0)
	}
	return c.err()
}

func (d JudgeVerdict) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}

// ParseJudgeVerdict returns the data of a TypeChangePodVerdict event from a judge
// other than the server, with a truncated message.
func ParseJudgeVerdict(e cloudevents.Event) (JudgeVerdict, error) {
	d, err := decode[JudgeVerdict](e, TypeChangePodVerdict)
	d.Message = text.Truncate(d.Message, MaxText)
	return valid(e, d, err)
}

// JudgeOf returns the name of the judge in the data of a TypeChangePodVerdict event, or
// "" if the verdict is the server's. The extension is not signed, so JudgeOf ignores
// it.
func JudgeOf(e cloudevents.Event) string {
	var d struct {
		Judge string `json:"judge"`
	}
	if e.Type() != TypeChangePodVerdict || e.DataAs(&d) != nil {
		return ""
	}
	return d.Judge
}
