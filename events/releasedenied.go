package events

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// ReleaseDenied is the data of TypeReleaseDenied: an update of a suspended
// workload, or a release that did not pass its check, was refused. Reason says
// which.
type ReleaseDenied struct {
	// RequestUID is the uid of the admission request.
	RequestUID types.UID `json:"requestUid"`
	Namespace  string    `json:"namespace"`
	Workload   Workload  `json:"workload"`
	// User is the name under which the API server knew the author. New cuts it
	// to 512 bytes.
	User string `json:"user"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// Message is what the user was told. New cuts it to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = ReleaseDenied{}

// Type implements Data.
func (ReleaseDenied) Type() string { return TypeReleaseDenied }

// ID implements Data. Admission may be called several times for one request:
// that is one refusal.
func (d ReleaseDenied) ID() string { return string(d.RequestUID) + "/denied" }

// Source implements Data: the workload.
func (d ReleaseDenied) Source() string { return d.Workload.source(d.Namespace) }

// Subject implements Data: the workload.
func (d ReleaseDenied) Subject() string { return d.Workload.Name }

// Validate implements Data.
func (d ReleaseDenied) Validate() error {
	var c checker
	c.uid("requestUid", d.RequestUID)
	c.namespace(d.Namespace)
	d.Workload.check(&c)
	c.required("user", d.User, maxUser)
	c.required("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d ReleaseDenied) bounded(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	// Who it was stays, however long the message is.
	d.User = text.Truncate(d.User, maxUser)
	return d
}
