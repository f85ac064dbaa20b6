package events

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// Verb is a step of a release and the last part of a changeworkload type.
type Verb string

// The verbs.
const (
	// VerbStarted: the release left state Init: it began to run (its order, if it needs one, was
	// accepted), or it ended before that.
	VerbStarted Verb = "started"
	// VerbProgressed: the progress of the release, every 30 s while it runs, less often
	// without progress, and whenever it enters a state without a verb of its own.
	VerbProgressed Verb = "progressed"
	// VerbSucceeded, VerbSuspended and VerbFailed: the release entered that
	// state. Each entry is a fact of its own.
	VerbSucceeded Verb = "succeeded"
	VerbSuspended Verb = "suspended"
	VerbFailed    Verb = "failed"
	// VerbRolledBack: the workload was rolled back to another version.
	VerbRolledBack Verb = "rolledback"
	// VerbBypassed: the release began although the workload was suspended.
	VerbBypassed Verb = "bypassed"
)

const (
	changeWorkloadPrefix = "dev.breakwater.changeworkload."
	versionSuffix        = ".v1"
)

// ChangeWorkload is the data of the changeworkload types.
type ChangeWorkload struct {
	// Verb is part of the event's type and not of the JSON.
	Verb Verb `json:"-"`
	// Namespace, Name and UID are the ChangeWorkload's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Workload  Workload  `json:"workload"`
	Version   string    `json:"version"`
	Attempt   int64     `json:"attempt"`
	// OrderID and AppName are those of the ChangeWorkload, so that the event can be reported to the
	// server after its deletion. Events of earlier versions do not have them.
	OrderID string `json:"orderId,omitempty"`
	AppName string `json:"appName,omitempty"`
	// Status is the state; empty means Init.
	Status v1alpha1.ReleasePhase `json:"status,omitempty"`
	// EntryTimeUnix is when the release entered Status, in seconds. Required for
	// VerbSucceeded, VerbSuspended and VerbFailed.
	EntryTimeUnix int64 `json:"entryTimeUnix,omitempty"`
	// ProgressUnix is the time that VerbProgressed reports on, in seconds: the beginning of
	// an interval of at least 30 s, or the entry into a state.
	ProgressUnix int64 `json:"slotUnix,omitempty"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason,omitempty"`
	// Message is for people, truncated to MaxText bytes.
	Message string             `json:"message,omitempty"`
	Counts  v1alpha1.PodCounts `json:"counts"`
	// User is the author of the bypass (VerbBypassed) or of the rollback request (VerbRolledBack),
	// truncated to 512 bytes.
	User string `json:"user,omitempty"`
}

var _ Data = ChangeWorkload{}

// Type implements Data.
func (d ChangeWorkload) Type() string { return changeWorkloadPrefix + string(d.Verb) + versionSuffix }

// ID implements Data. The UID distinguishes attempts: each has its own object.
func (d ChangeWorkload) ID() string {
	id := string(d.UID) + "/" + d.Version + "/" + string(d.Verb)
	switch d.Verb {
	case VerbProgressed:
		id += fmt.Sprintf("/%d", d.ProgressUnix)
	case VerbSucceeded, VerbSuspended, VerbFailed:
		id += fmt.Sprintf("/%d", d.EntryTimeUnix)
	}
	return id
}

// Source implements Data: the ChangeWorkload.
func (d ChangeWorkload) Source() string { return pathOfChange("changeworkloads", d.Namespace, d.Name) }

// Subject implements Data: the workload.
func (d ChangeWorkload) Subject() string { return d.Workload.Name }

// Validate implements Data.
func (d ChangeWorkload) Validate() error {
	var c checker
	if !slices.Contains(Types(), d.Type()) {
		c.invalid("verb", string(d.Verb), "unknown")
	}
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	d.Workload.check(&c)
	c.version(d.Version)
	c.attempt(d.Attempt)
	c.optional("orderId", d.OrderID, maxOrderID)
	c.optional("appName", d.AppName, maxName)
	c.optional("status", string(d.Status), maxShortText)
	switch d.Verb {
	case VerbSucceeded, VerbSuspended, VerbFailed:
		if d.EntryTimeUnix <= 0 {
			c.invalid("entryTimeUnix", d.EntryTimeUnix, "must be positive")
		}
	case VerbProgressed:
		if d.ProgressUnix <= 0 {
			c.invalid("slotUnix", d.ProgressUnix, "must be positive")
		}
	}
	c.optional("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	c.optional("user", d.User, maxUser)
	return c.err()
}

func (d ChangeWorkload) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	d.User = text.Truncate(d.User, maxUser)
	return d
}
