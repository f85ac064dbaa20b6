package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// DeletionFlow is the data of TypeDeletionFlowOpened and TypeDeletionFlowClosed:
// the breaker of a flow control opened because a limit was reached, or closed.
// Field status.shares of the object attributes the deletions.
type DeletionFlow struct {
	// Open is true for TypeDeletionFlowOpened. It is part of the event's type
	// and not of the JSON.
	Open bool      `json:"-"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// SinceUnix is the last transition time of condition Open, in seconds.
	SinceUnix int64 `json:"sinceUnix"`
	// Deleted is the number of deletions in the longest window.
	Deleted int64 `json:"deleted"`
	// Suspected is the suspected cause: rollout, drain, mass-delete.
	Suspected string `json:"suspected,omitempty"`
	// RatioTenths is the ratio of the deletions in the window whose limit is reached to the
	// median of the seven windows before it, in tenths; 0 if the median is 0.
	RatioTenths int64 `json:"ratioTenths,omitempty"`
	// RoomUnix is when the window admits a deletion again, in seconds; 0 means
	// unknown or never.
	RoomUnix int64 `json:"roomUnix,omitempty"`
	// Reason is one of the Reason constants.
	Reason string `json:"reason"`
	// Message is for people and includes the shares by user, owner and
	// namespace, truncated to MaxText bytes.
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
	c.optional("suspected", d.Suspected, maxShortText)
	c.required("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d DeletionFlow) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}
