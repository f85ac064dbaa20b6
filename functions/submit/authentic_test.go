package submit_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Otherwise pods could use up the requests of the function to the API server, which the
// wake-ups of the controller need.
func TestAForgedWakeUpCausesNoRead(t *testing.T) {
	for name, e := range map[string]event.Event{"of a batch": ready(t, pre), "of an order": orderStartReady(t)} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
			e.SetExtension(eventsigning.Extension, nil)
			if got := functions.ResultOf(function(t.Context(), e)); got != functions.ResultPermanent {
				t.Errorf("result %s", got)
			}
			if reads := c.Gets("changepods") + c.Gets("changeworkloads"); reads > 0 || c.Patches() > 0 {
				t.Errorf("%d reads, %d writes", reads, c.Patches())
			}
			calls(t, server)
		})
	}
}
