package delivery

import (
	"context"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/breakwater-dev/breakwater/events"
)

type taken []string

func (t *taken) Send(_ context.Context, e cloudevents.Event) { *t = append(*t, e.ID()) }

func TestOnlyDataThatIsValidIsTold(t *testing.T) {
	var got taken
	valid := started("")
	Tell(t.Context(), &got, valid)
	Tell(t.Context(), &got, events.Permission{Verb: events.PermissionGranted})
	if len(got) != 1 || got[0] != valid.ID() {
		t.Errorf("told of %q", got)
	}
}
