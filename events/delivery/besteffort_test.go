package delivery

import (
	"context"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/breakwater-dev/breakwater/events"
)

type sentIDs []string

func (s *sentIDs) Send(_ context.Context, e cloudevents.Event) { *s = append(*s, e.ID()) }

func TestSendBestEffortSkipsInvalidData(t *testing.T) {
	var got sentIDs
	valid := started("")
	SendBestEffort(t.Context(), &got, valid)
	SendBestEffort(t.Context(), &got, events.Permission{Verb: events.PermissionGranted})
	if len(got) != 1 || got[0] != valid.ID() {
		t.Errorf("sent %q", got)
	}
}
