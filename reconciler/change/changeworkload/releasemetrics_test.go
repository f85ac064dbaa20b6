package changeworkload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestHeldReleasesAreCountedByReason(t *testing.T) {
	release := func(status corev1.ConditionStatus, reason string) *v1alpha1.ChangeWorkload {
		r := &v1alpha1.ChangeWorkload{}
		r.Status.Conditions = []apis.Condition{{Type: v1alpha1.ReleaseHeld, Status: status, Reason: reason}}
		return r
	}
	for name, tc := range map[string]struct {
		releases []*v1alpha1.ChangeWorkload
		want     map[string]int64
	}{
		"none":                {nil, map[string]int64{v1alpha1.ReasonSuspended: 0, v1alpha1.ReasonHeldUnjudged: 0}},
		"without a condition": {[]*v1alpha1.ChangeWorkload{{}}, map[string]int64{v1alpha1.ReasonSuspended: 0, v1alpha1.ReasonHeldUnjudged: 0}},
		"held and not held": {[]*v1alpha1.ChangeWorkload{
			release(corev1.ConditionTrue, v1alpha1.ReasonSuspended), release(corev1.ConditionTrue, v1alpha1.ReasonSuspended),
			release(corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged), release(corev1.ConditionFalse, v1alpha1.ReasonNotSuspended),
		}, map[string]int64{v1alpha1.ReasonSuspended: 2, v1alpha1.ReasonHeldUnjudged: 1}},
	} {
		if diff := cmp.Diff(tc.want, countHeld(tc.releases)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReleasesWhoseConditionDriftedIsTrueAreCounted(t *testing.T) {
	of := func(t apis.ConditionType) *v1alpha1.ChangeWorkload {
		r := &v1alpha1.ChangeWorkload{}
		r.Status.Conditions = []apis.Condition{{Type: t, Status: corev1.ConditionTrue}}
		return r
	}
	if n := countDrifted([]*v1alpha1.ChangeWorkload{{}, of(v1alpha1.ReleaseHeld), of(v1alpha1.ReleaseDrifted)}); n != 1 {
		t.Errorf("counted %d, want 1", n)
	}
}

func TestTheAgeIsThatOfTheOldestBatchThatIsNotDone(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	batch := func(age time.Duration, phase v1alpha1.BatchPhase) *v1alpha1.ChangePod {
		b := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		b.Status.Phase = phase
		return b
	}
	deleted := batch(time.Hour, v1alpha1.BatchPreWait)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		batches []*v1alpha1.ChangePod
		want    time.Duration
	}{
		"none":                   {nil, 0},
		"all done":               {[]*v1alpha1.ChangePod{batch(time.Hour, v1alpha1.BatchExecuteDone)}, 0},
		"the oldest counts":      {[]*v1alpha1.ChangePod{batch(time.Minute, v1alpha1.BatchInit), batch(5*time.Minute, v1alpha1.BatchPostSubmitted)}, 5 * time.Minute},
		"a deleted one does not": {[]*v1alpha1.ChangePod{deleted, batch(time.Second, v1alpha1.BatchPreWait)}, time.Second},
	} {
		if got := oldestBatch(tc.batches, now); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
