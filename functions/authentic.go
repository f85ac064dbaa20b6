package functions

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Verifier verifies the signature of an event; *eventsigning.Store implements it.
type Verifier interface {
	Verify(ctx context.Context, e event.Event) error
}
