package submit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// A rate limit of ours is no fact about the server: the timeout of the stage does not
// begin, and no error is stored.
//
// No time passes in the bubble, because the listener of the server keeps it busy: no slot
// becomes free, and no time limit ends.
func TestACallThatTheRateLimitPreventsLeavesNoIntent(t *testing.T) {
	for name, tc := range map[string]struct {
		release *v1alpha1.ChangeWorkload
		event   event.Event
		call    string
	}{
		"start of a batch": {ft.NewRelease(), ready(t, pre), start},
		"start of the order": {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderStep = &v1alpha1.OrderStep{Name: v1alpha1.OrderStepStart}
		}), orderStartReady(t), startOrder},
		"opening the order": {ft.NewRelease(unopened), orderStartReady(t), open},
	} {
		t.Run(name, func(t *testing.T) {
			panicIfItWaits(t)
			synctest.Test(t, func(t *testing.T) {
				c, server, function := newFunction(t, tc.release, ft.NewBatch(1, []string{"a"}))
				c.LimitRate(t, "1", "1", "100ms")
				client, _, err := server.Clients.Client(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				slot, err := client.Reserve(t.Context()) // leaves no slot for a second
				if err != nil {
					t.Fatal(err)
				}
				if err := function(t.Context(), tc.event); err != nil {
					t.Errorf("got %v, want no error: the Broker need not retry", err)
				}
				calls(t, server)
				if n := c.Patches(); n != 0 {
					t.Errorf("%d writes: order %+v, batch %+v", n, c.ChangeWorkload(ft.Release).Status.Order, c.ChangePod(ft.BatchName(1)).Status)
				}
				slot.Cancel()
				if err := function(t.Context(), tc.event); err != nil {
					t.Error(err)
				}
				if got := server.Calls(); len(got) == 0 || got[0] != tc.call {
					t.Errorf("calls %q, want %s", got, tc.call)
				}
			})
		})
	}
}

// panicIfItWaits ends a test that waits in its bubble for a time that never comes.
func panicIfItWaits(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { panic(t.Name() + " waits for the time of its bubble") })
	t.Cleanup(func() { timer.Stop() })
}

// No time passes in the bubble, as above.
func TestACallThatIsNotNeededTakesNoPlaceInTheRateLimit(t *testing.T) {
	panicIfItWaits(t)
	synctest.Test(t, func(t *testing.T) {
		c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
		c.LimitRate(t, "1", "1", "5s")
		c.BeforeNextPatch(func() { // another process is faster
			batch := c.ChangePod(ft.BatchName(1))
			ft.Intent(pre, 0)(batch)
			c.Write(batch)
		})
		if err := function(t.Context(), ready(t, pre)); err != nil {
			t.Fatal(err)
		}
		calls(t, server)
		client, _, err := server.Clients.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := client.Reserve(ctx); err != nil {
			t.Errorf("the slot was not given to another call: %v", err)
		}
	})
}
