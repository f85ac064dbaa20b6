package events

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// ReleaseDenied is the data of TypeReleaseDenied: admission denied an update or the deletion
// of a suspended workload or, as Reason says, a release that did not pass its release check.
type ReleaseDenied struct {
	// RequestUID is the uid of the admission request.
	RequestUID types.UID `json:"requestUid"`
	Namespace  string    `json:"namespace"`
	Workload   Workload  `json:"workload"`
	// User is the author's user name at the API server, truncated to 512 bytes.
	User string `json:"user"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// Message is the message of the denial, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = ReleaseDenied{}

// Type implements Data.
func (ReleaseDenied) Type() string { return TypeReleaseDenied }

// ID implements Data. Admission may be called several times for one request,
// which is one denial.
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

func (d ReleaseDenied) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	d.User = text.Truncate(d.User, maxUser) // the user name is kept even if limit is small
	return d
}
