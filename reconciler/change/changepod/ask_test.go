package changepod

import (
	"context"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	gocmp "github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// countingSender counts events.
type countingSender struct{ sent int }

func (s *countingSender) Send(context.Context, event.Event) { s.sent++ }

// askedAt returns the seconds at which the server is asked for a verdict that never
// comes. Before each second, before is called.
func askedAt(t *testing.T, before func(*callqueue.Queue)) []int {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(t0)
	sender := &countingSender{}
	r := &Reconciler{wakeups: resend.New(clock), sender: sender, clock: clock, calls: callqueue.New(clock)}
	c := batch(submission(v1alpha1.StagePre, true))
	c.UID = "batch"
	owner := &v1alpha1.ChangeWorkload{}
	owner.Name, owner.Spec.Reversion, owner.Spec.Attempt = "a--x--v", "0123456789abcdef0123456789abcdef", 1
	c.Namespace = "default"
	var asked []int
	for second := range 136 {
		clock.SetTime(t0.Add(time.Duration(second) * time.Second))
		before(r.calls)
		sent := sender.sent
		d := Decide(Input{Now: clock.Now(), Settings: settings.Default(), ServerConfigured: true, ChangePod: c})
		if _, err := r.wakeSubmit(t.Context(), c, owner, d); err != nil {
			t.Fatal(err)
		}
		if sender.sent > sent {
			asked = append(asked, second)
		}
	}
	return asked
}

func TestTheServerIsAskedForAVerdictAtGrowingDistance(t *testing.T) {
	asked := askedAt(t, func(*callqueue.Queue) {})
	// The timeout is 120 s. The server is asked at once then, and for another 15 s.
	if diff := gocmp.Diff([]int{1, 3, 7, 15, 31, 61, 91, 120, 122, 126, 134}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestAQuestionAboveTheLimitIsLeftOutAndTheLastOnesAreNot(t *testing.T) {
	asked := askedAt(t, func(q *callqueue.Queue) {
		for q.TakeQuestion() { // other batches use up the limit
		}
	})
	if diff := gocmp.Diff([]int{120, 122, 126, 134}, asked); diff != "" {
		t.Error(diff)
	}
}
