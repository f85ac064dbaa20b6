package changepod

import (
	"context"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// lastEvent keeps the last event.
type lastEvent struct{ event.Event }

func (s *lastEvent) Send(_ context.Context, e event.Event) { s.Event = e }

// A question for a verdict writes nothing at first, so a copy would only make the event larger.
func TestOnlyTheWakeUpOfACallHasACopyOfTheBatch(t *testing.T) {
	owner := &v1alpha1.ChangeWorkload{}
	owner.Name, owner.Spec.Reversion, owner.Spec.Attempt = "a--x--v", "0123456789abcdef0123456789abcdef", 1
	for name, tc := range map[string]struct {
		batch   *v1alpha1.ChangePod
		purpose resend.Purpose
		want    bool
	}{
		"of the first call": {batch(), resend.ForCall, true},
		"of a question":     {batch(submission(v1alpha1.StagePre, true)), resend.ForVerdict, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(t0)
			sender := &lastEvent{}
			r := &Reconciler{wakeups: resend.New(clock), sender: sender, clock: clock, calls: callqueue.New(clock)}
			tc.batch.Namespace, tc.batch.UID, tc.batch.ResourceVersion = "default", "batch", "7"
			if _, err := r.wakeSubmit(t.Context(), tc.batch, owner, Decision{WakeStage: v1alpha1.StagePre, WakeFor: tc.purpose}); err != nil {
				t.Fatal(err)
			}
			got, err := events.ParseChangePodReady(sender.Event)
			if err != nil {
				t.Fatal(err)
			}
			if (got.ChangePod != nil) != tc.want {
				t.Errorf("wake-up is %+v", got)
			}
		})
	}
}
