package functions

import (
	"context"
	"errors"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Verifier verifies the signature of an event; *eventsigning.Store implements it.
type Verifier interface {
	Verify(ctx context.Context, e event.Event) error
}

// Authenticated returns a function that handles only events whose signature verifier accepts.
func Authenticated(verifier Verifier, handle Function) Function {
	return func(ctx context.Context, e event.Event) error {
		if err := VerificationError(verifier.Verify(ctx, e)); err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// VerificationError marks the error of an event without a valid signature as permanent.
func VerificationError(err error) error {
	if errors.Is(err, eventsigning.ErrNotAuthentic) {
		return Permanent(err)
	}
	return err
}
