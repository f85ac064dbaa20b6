// Package functions is the small runtime that the functions share: it receives
// CloudEvents over HTTP, hands them to one Function, and answers what a Trigger
// understands.
//
// A function scales to zero, so it starts without informers, leader election or
// a wait for anything: it listens first and reads what it needs when an event
// comes. It writes facts by compare-and-swap (Swap) and tolerates wake-ups that
// are doubled, late or outdated.
package functions

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Function reacts to one event. nil means that nothing more has to be done,
// which includes a wake-up that is outdated. Permanent marks an error that no
// repetition mends; every other error is worth a repetition.
type Function func(ctx context.Context, e event.Event) error
