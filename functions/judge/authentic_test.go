package judge_test

import (
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Otherwise each event of a pod would cause queries, at times of its choice, and its version
// and attempt would be those of a signed verdict.
func TestAForgedWakeUpCausesNoLook(t *testing.T) {
	for name, forge := range map[string]func(*event.Event){
		"without a signature": func(e *event.Event) { e.SetExtension(eventsigning.Extension, nil) },
		"with a guessed key": func(e *event.Event) {
			_ = eventsigning.Keys{Current: []byte("guessed")}.Sign(t.Context(), e)
		},
		"with the key of verdicts": func(e *event.Event) { _ = ft.Keys().Sign(t.Context(), e) },
		"of another attempt": func(e *event.Event) {
			_ = e.SetData(event.ApplicationJSON, wakeUp(1, func(d *events.ChangePodReady) { d.Attempt = 7 }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &traffic{newFails: 7}
			f := newFixture(t, tr.source, newBatch(1))
			f.clock.SetTime(ft.Now().Add(2 * time.Minute))
			e := eventOf(t, wakeUp(1))
			forge(&e)
			if got := functions.ResultOf(f.handle(t.Context(), e)); got != functions.ResultPermanent {
				t.Errorf("result %s", got)
			}
			if tr.queries.Load() != 0 || f.Patches() != 0 || len(f.broker.events) != 0 || f.Gets("changepods") != 0 {
				t.Errorf("%d queries, %d writes, %d verdicts, %d reads", tr.queries.Load(), f.Patches(), len(f.broker.events), f.Gets("changepods"))
			}
		})
	}
}

// The wake-up was on its way while the key was replaced.
func TestAWakeUpOutlivesARotationOfTheKey(t *testing.T) {
	tr := &traffic{newFails: 7}
	f := newFixture(t, tr.source, newBatch(1))
	f.clock.SetTime(ft.Now().Add(2 * time.Minute))
	if err := f.newFunction(tr.source, ft.Rotated(ft.EventKeys()))(t.Context(), eventOf(t, wakeUp(1))); err != nil {
		t.Fatal(err)
	}
	if got := f.verdict(t); got.Verdict != "fail" {
		t.Errorf("sent %+v", got)
	}
}
