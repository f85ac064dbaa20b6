package events

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// OrderReady is the data of TypeOrderReady: the order of a release needs a call
// to the server. The event is sent again until the ChangeWorkload records the
// call.
type OrderReady struct {
	// Namespace, Name and UID are the ChangeWorkload's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Version   string    `json:"version"`
	Attempt   int64     `json:"attempt"`
	// Step is status.orderStep.name at the time of sending. An event for an
	// earlier step has no effect.
	Step v1alpha1.OrderStepName `json:"step"`
}

var _ Data = OrderReady{}

// Type implements Data.
func (OrderReady) Type() string { return TypeOrderReady }

// ID implements Data.
func (d OrderReady) ID() string { return string(d.UID) + "/" + d.Version + "/" + string(d.Step) }

// Source implements Data: the ChangeWorkload.
func (d OrderReady) Source() string { return pathOfChange("changeworkloads", d.Namespace, d.Name) }

// Subject implements Data: the ChangeWorkload.
func (d OrderReady) Subject() string { return d.Name }

// Validate implements Data.
func (d OrderReady) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.version(d.Version)
	c.attempt(d.Attempt)
	switch d.Step {
	case v1alpha1.OrderStepStart, v1alpha1.OrderStepFinish, v1alpha1.OrderStepClose:
	default:
		c.invalid("step", string(d.Step), "must be Start, Finish or Close")
	}
	return c.err()
}

func (d OrderReady) truncated(int) Data { return d }
