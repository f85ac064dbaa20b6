package events

import (
	"context"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

type taken []string

func (t *taken) Send(_ context.Context, e cloudevents.Event) { *t = append(*t, e.ID()) }

func TestOnlyDataThatIsValidIsTold(t *testing.T) {
	var got taken
	valid := granting(PermissionGranted)
	Tell(t.Context(), &got, valid)
	Tell(t.Context(), &got, Permission{Verb: PermissionGranted})
	if len(got) != 1 || got[0] != valid.ID() {
		t.Errorf("told of %q", got)
	}
}
