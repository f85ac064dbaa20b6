package report_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// A pod that can read ChangeWorkloads and reach the Broker can send an event about a release
// that exists, with any text.
func TestAForgedEventIsNotReported(t *testing.T) {
	for name, forge := range map[string]func(*event.Event){
		"without a signature": func(e *event.Event) { e.SetExtension(eventsigning.Extension, nil) },
		"with a guessed key": func(e *event.Event) {
			_ = eventsigning.Keys{Current: []byte("guessed")}.Sign(t.Context(), e)
		},
		"with the key of verdicts": func(e *event.Event) { _ = ft.Keys().Sign(t.Context(), e) },
		"with the signature of another event": func(e *event.Event) {
			e.SetExtension(eventsigning.Extension, eventOf(t, suspended()).Extensions()[eventsigning.Extension])
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			server := ft.NewServerDouble(t, c, "")
			f := newFunction(t, c, server.Clients)
			forgedState, forgedPod := suspended(), finished(1)
			forgedState.Message, forgedPod.Pod = "approved by the security team", "sleep-of-a-stranger"
			for _, d := range []events.Data{forgedState, forgedPod} {
				e := eventOf(t, d)
				forge(&e)
				if got := functions.ResultOf(f(t.Context(), e)); got != functions.ResultPermanent {
					t.Errorf("result %s", got)
				}
			}
			if orders := server.Orders(); len(orders) > 0 {
				t.Errorf("the server recorded %+v", orders)
			}
			if n := c.Gets("changeworkloads"); n > 0 {
				t.Errorf("%d reads of the release", n)
			}
		})
	}
}

// The event was on its way while the key was replaced.
func TestAReportOutlivesARotationOfTheKey(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	if err := newFunctionWith(c, server.Clients, ft.Rotated(ft.EventKeys()))(t.Context(), eventOf(t, suspended())); err != nil {
		t.Fatal(err)
	}
	if got := server.Orders(); len(got) != 1 {
		t.Errorf("reports are %+v, want one", got)
	}
}
