package submit_test

import (
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// readyWith returns a wake-up for batch 1 with a copy of it.
func readyWith(t *testing.T, batch *v1alpha1.ChangePod) event.Event {
	return wakeUp(t, events.ChangePodReady{
		Namespace: ft.Namespace, Name: batch.Name, UID: batch.UID, ChangeWorkload: ft.Release,
		Version: ft.Version, Attempt: 1, Stage: pre, ChangePod: batch,
	})
}

func TestAWakeUpWithACopyOfTheBatchNeedsNoRead(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	for _, e := range []event.Event{orderStartReady(t), readyWith(t, c.ChangePod(ft.BatchName(1)))} {
		if err := function(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	calls(t, server, open, startOrder, start)
	if n := c.Gets("changepods"); n > 0 {
		t.Errorf("%d reads", n)
	}
	if s := c.ChangePod(ft.BatchName(1)).Status; s.ChangePodID == "" || s.SubmissionOf(pre).Attempts != 1 {
		t.Errorf("status is %+v", s)
	}
}

// Otherwise an old copy, as in a dead letter that is sent again, could start a check again, or
// prevent one that is due.
func TestAnOutdatedCopyOfTheBatchDecidesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		since func(*v1alpha1.ChangePod)
		copy  func(*v1alpha1.ChangePod)
		want  []string
	}{
		"the batch was started since":            {since: ft.Started("n", 0)},
		"another call is in flight since":        {since: ft.Intent(pre, time.Second)},
		"the copy looks started":                 {copy: ft.Started("n", 0), want: []string{start}},
		"the copy looks as if a call was flying": {copy: ft.Intent(pre, time.Second), want: []string{start}},
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
			batch := c.Copy(ft.BatchName(1), tc.since, tc.copy)
			if err := function(t.Context(), readyWith(t, batch)); err != nil {
				t.Fatal(err)
			}
			calls(t, server, tc.want...)
		})
	}
}
