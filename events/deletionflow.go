package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// DeletionFlow is the data of TypeDeletionFlowOpened and TypeDeletionFlowClosed:
// the breaker of a PodDeletionFlowControl opened, because a limit is hit, or
// closed. Who did what stands in status.shares of the object.
type DeletionFlow struct {
	// Open says which of the two types it is. It is not part of the JSON: the
	// type says it.
	Open bool      `json:"-"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// SinceUnix is when the condition Open became what it is.
	SinceUnix int64 `json:"sinceUnix"`
	// Deleted is how many deletions the longest window held.
	Deleted int64 `json:"deleted"`
	// Suspected is what the deletions looked like: rollout, drain, mass-delete.
	Suspected string `json:"suspected,omitempty"`
	// RatioTenths is how many times the usual the full window held, in tenths; 0 where
	// there is no usual.
	RatioTenths int64 `json:"ratioTenths,omitempty"`
	// RoomUnix is when there is room again; 0: not known, or never.
	RoomUnix int64 `json:"roomUnix,omitempty"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// Message is for people: shares by user, owner and namespace among it. New
	// cuts it to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = DeletionFlow{}

// Type implements Data.
func (d DeletionFlow) Type() string {
	if d.Open {
		return TypeDeletionFlowOpened
	}
	return TypeDeletionFlowClosed
}

// ID implements Data.
func (d DeletionFlow) ID() string {
	if d.Open {
		return fmt.Sprintf("%s/%d/opened", d.UID, d.SinceUnix)
	}
	return fmt.Sprintf("%s/%d/closed", d.UID, d.SinceUnix)
}

// Source implements Data: the flow control.
func (d DeletionFlow) Source() string {
	return clusterPath(v1alpha1.SchemeGroupVersion.WithResource("poddeletionflowcontrols"), d.Name)
}

// Subject implements Data: the flow control.
func (d DeletionFlow) Subject() string { return d.Name }

// Validate implements Data.
func (d DeletionFlow) Validate() error {
	var c checker
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	if d.SinceUnix <= 0 {
		c.invalid("sinceUnix", d.SinceUnix, "must be positive")
	}
	if d.Deleted < 0 {
		c.invalid("deleted", d.Deleted, "must not be negative")
	}
	if d.RatioTenths < 0 {
		c.invalid("ratioTenths", d.RatioTenths, "must not be negative")
	}
	c.optional("suspected", d.Suspected, maxWord)
	c.required("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d DeletionFlow) bounded(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}
