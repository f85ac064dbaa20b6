package diagnosis_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/events"
)

func TestADeadLetterWaitsUntilItsEffectIsSeen(t *testing.T) {
	undelivered := func(kind, uid string) []corev1.Event {
		return []corev1.Event{{Reason: v1alpha1.ReasonEventUndelivered, InvolvedObject: corev1.ObjectReference{Kind: kind, UID: "u", Name: uid}}, {Reason: "Other"}}
	}
	withBatch := func(phase v1alpha1.BatchPhase) []v1alpha1.ChangePod {
		b := v1alpha1.ChangePod{}
		b.UID, b.Status.Phase = "u", phase
		return []v1alpha1.ChangePod{b}
	}
	withRelease := func(change func(*v1alpha1.ChangeWorkload)) []v1alpha1.ChangeWorkload {
		c := v1alpha1.ChangeWorkload{}
		c.UID = "u"
		change(&c)
		return []v1alpha1.ChangeWorkload{c}
	}
	reported := undelivered("ChangeWorkload", "r")
	reported[0].Message = "event " + events.TypeChangeWorkloadSuspended + " could not be delivered to report"
	nothing := func(*v1alpha1.ChangeWorkload) {}
	for name, tc := range map[string]struct {
		events   []corev1.Event
		releases []v1alpha1.ChangeWorkload
		batches  []v1alpha1.ChangePod
		waiting  bool
	}{
		"a batch that was not called":   {undelivered("ChangePod", "b"), nil, withBatch(v1alpha1.BatchPreWait), true},
		"a batch that ended":            {undelivered("ChangePod", "b"), nil, withBatch(v1alpha1.BatchExecuteDone), false},
		"a batch that was deleted":      {undelivered("ChangePod", "b"), nil, nil, false},
		"an order with a due step":      {undelivered("ChangeWorkload", "r"), withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.OrderStep = &v1alpha1.OrderStep{} }), nil, true},
		"an announcement":               {undelivered("ChangeWorkload", "r"), withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.Announcements = make([]v1alpha1.Announcement, 1) }), nil, true},
		"a release without a due step":  {undelivered("ChangeWorkload", "r"), withRelease(nothing), nil, false},
		"a finished pod":                {undelivered("Pod", "p"), nil, nil, false},
		"a report about a release":      {reported, withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.OrderStep = &v1alpha1.OrderStep{} }), nil, false},
		"a verdict in the inbox":        {nil, withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.Inbox = make([]v1alpha1.InboxVerdict, 1) }), nil, true},
		"a release with an empty inbox": {undelivered("ChangeWorkload", "r"), withRelease(nothing), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.DeadLetters(tc.events, tc.releases, tc.batches)
			if len(got) != 1 || got[0].Waiting != tc.waiting || got[0].Explanation == "" {
				t.Errorf("got %+v, want waiting %t", got, tc.waiting)
			}
		})
	}
}
