// Package functions is the runtime that the functions share. It receives
// CloudEvents over HTTP, calls a Function with each, and answers with a status
// that a Trigger understands.
//
// A function that receives events scales to zero. It therefore starts without informers and
// without leader election, and reads objects only when an event arrives. It writes facts by
// compare-and-swap (PatchStatus) and tolerates duplicate, late and outdated wake-ups.
// Function judge also watches ConfigMap config-broker and the Broker, to which it sends verdicts.
// Function callback, which receives requests of the server, does not scale to zero.
package functions

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Function handles one event. It returns nil if nothing is left to do, also for an
// outdated wake-up. Permanent marks permanent errors; all others are transient and
// are retried.
type Function func(ctx context.Context, e event.Event) error
