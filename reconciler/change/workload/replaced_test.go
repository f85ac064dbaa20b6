package workload

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// replacedReleases are n releases of the workload that newer ones replaced before they ended, newest first.
func replacedReleases(n int64) (all []*v1alpha1.ChangeWorkload) {
	for attempt := n; attempt > 0; attempt-- {
		all = append(all, failedFor(v1alpha1.ReasonSuperseded, fmt.Sprint("replaced-", attempt), attempt))
	}
	return all
}

// failedFor is a release of the workload that failed for a reason.
func failedFor(reason, uid string, attempt int64) *v1alpha1.ChangeWorkload {
	c := recorded(uid, "d", attempt, v1alpha1.ReleaseFailed)
	c.Status.SetConditions(apis.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: reason}})
	return c
}

func TestAWorkloadWithoutASuccessKeepsTheNewestReplacedReleases(t *testing.T) {
	// One release more than the limit, unless others are not counted.
	replaced := replacedReleases(maxReplaced + 1)
	running := recorded("now", "d", 40, v1alpha1.ReleaseRunning)
	open, unsent := failedFor(v1alpha1.ReasonSuperseded, "open", 1), failedFor(v1alpha1.ReasonSuperseded, "unsent", 1)
	open.Status.Order = &v1alpha1.Order{OpenedTime: new(metav1.Now())}
	unsent.Status.Announce(v1alpha1.Announcement{Verb: "failed"})
	leaving := failedFor(v1alpha1.ReasonSuperseded, "leaving", 1)
	leaving.DeletionTimestamp = new(metav1.Now())
	list := func(c ...*v1alpha1.ChangeWorkload) []*v1alpha1.ChangeWorkload { return c }
	for name, tc := range map[string]struct {
		named *v1alpha1.ChangeWorkload
		older []*v1alpha1.ChangeWorkload
		want  []*v1alpha1.ChangeWorkload
	}{
		"the limit": {running, replaced[1:], nil},
		"one more":  {running, slices.Concat(replaced[9:], replaced[:9]), replaced[maxReplaced:]},
		"many more": {running, replacedReleases(39), replacedReleases(39 - maxReplaced)},
		"suspended": {recorded("now", "d", 40, v1alpha1.ReleaseSuspend), replaced, replaced[maxReplaced:]},
		"one of them by an order that was not accepted": {recorded("now", "d", 40, v1alpha1.ReleaseRunning),
			append(list(failedFor(v1alpha1.ReasonOrderNotAccepted, "unaccepted", 0)), replaced[1:]...), list(failedFor(v1alpha1.ReasonOrderNotAccepted, "unaccepted", 0))},
		"the current release does not count":        {failedFor(v1alpha1.ReasonOrderNotAccepted, "now", 40), replaced[1:], nil},
		"an open order":                             {running, append(list(open), replaced[1:]...), nil},
		"events that were not accepted":             {running, append(list(unsent), replaced[1:]...), nil},
		"a release that is being deleted":           {running, append(list(leaving), replaced[1:]...), nil},
		"a Success, which a rollback goes to":       {running, append(list(recorded("good", "d", 1, v1alpha1.ReleaseSuccess)), replaced[1:]...), nil},
		"a suspended one, which none goes to":       {running, append(list(recorded("bad", "d", 1, v1alpha1.ReleaseSuspend)), replaced[1:]...), nil},
		"one that failed later, which none goes to": {running, append(list(failedFor(v1alpha1.ReasonCheckFailed, "late", 1)), replaced[1:]...), nil},
		"one that timed out, which may continue":    {running, append(list(failedFor(v1alpha1.ReasonReleaseTimedOut, "slow", 1)), replaced[1:]...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(Input{
				OptedIn: true, Kind: workload.Deployment, UID: "d", Label: "v1", Computed: "v1", RevisionCount: 1, Known: true,
				Release: v1alpha1.Release{Version: "v1", Attempt: 40}, Named: tc.named, Owned: append(list(tc.named), tc.older...),
			})
			if diff := cmp.Diff(Decision{DeleteOlder: tc.want}, got); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}
