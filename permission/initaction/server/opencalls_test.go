package server

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// A restarted container calls again, and the connection of its predecessor may stay open
// for minutes.
func TestAPodHasOneOpenCall(t *testing.T) {
	for name, tc := range map[string]struct {
		pod    func(*corev1.Pod)
		reason string
	}{
		"while it waits for a permission": {nil, podmeta.ReasonPermissionApplying},
		"while it waits for its address":  {func(p *corev1.Pod) { p.Status.PodIPs = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, clock.RealClock{}, newPod(tc.pod)) // no timeout ends the last call
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
			const calls = 20
			replaced := make(chan protocol.Answer, calls)
			for range calls {
				answers := w.authorizeAsync(t.Context())
				go func() { replaced <- <-answers }()
			}
			for range calls - 1 {
				select {
				case a := <-replaced:
					if a.Reason != reasonReplaced || a.State == protocol.Granted || a.State == protocol.Denied {
						t.Errorf("%+v", a)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("%d calls are open", w.hub.Count())
				}
			}
			if tc.reason != "" {
				w.waitForReason(tc.reason)
			}
			if n := w.hub.Count(); n != 1 {
				t.Errorf("%d calls are open", n)
			}
		})
	}
}

// replacedAfterFirst is a context of a call that a later one replaces just after the
// context was asked for its error.
type replacedAfterFirst struct {
	context.Context
	replace context.CancelCauseFunc
}

func (c replacedAfterFirst) Err() error {
	defer c.replace(errReplaced)
	return c.Context.Err()
}

func TestACallThatIsReplacedAtAnyMomentSaysSo(t *testing.T) {
	ctx, replace := context.WithCancelCause(t.Context())
	defer replace(nil)
	c := &call{server: &server{}, reporter: &conditionReporter{}}
	for i, want := range []bool{false, true} {
		if a, ended := c.endedAnswer(replacedAfterFirst{ctx, replace}); ended != want || ended && a.Reason != reasonReplaced {
			t.Errorf("%d: %+v, %t", i, a, ended)
		}
	}
}
