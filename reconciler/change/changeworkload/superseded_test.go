package changeworkload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The end of a release is no pass for its pods: `kubectl breakwater tree` prints the counts.
func TestUnjudgedPodsOfASupersededReleaseCountAsThePolicySays(t *testing.T) {
	for policy, want := range map[v1alpha1.NoVerdictPolicy]v1alpha1.PodCounts{
		v1alpha1.NoVerdictPass: {Pods: 1, Passed: 1, Unjudged: 1},
		v1alpha1.NoVerdictHold: {Pods: 1, Checking: 1},
		// The setting was changed: a fail would have suspended the workload.
		v1alpha1.NoVerdictFail: {Pods: 1, Checking: 1},
	} {
		t.Run(string(policy), func(t *testing.T) {
			in := release(1, noVerdict(policy), finished(1, 1), judged(1, "done"), newer, was(v1alpha1.ReleaseFailed))
			d := Decide(in)
			if got := derive(in, d).Status.Counts; got != want || d.Action != ActionNone || d.Pods.HeldUnjudged != 0 {
				t.Errorf("counts %+v, want %+v; action %q, %d held", got, want, d.Action, d.Pods.HeldUnjudged)
			}
		})
	}
}

func TestALateFailOfASupersededReleaseCountsAgainstItsVersion(t *testing.T) {
	failedOrder := func(in *Input) { in.ChangeWorkload.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "fail"} }
	for name, tc := range map[string]struct {
		fail   func(*Input)
		reason string
	}{
		"of a pod":     {judged(1, "fail"), v1alpha1.ReasonCheckFailed},
		"of the order": {failedOrder, v1alpha1.ReasonOrderCheckFailed},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(1, newer, was(v1alpha1.ReleaseRunning), recorded)
			before := in.ChangeWorkload.Status
			if before.Phase != v1alpha1.ReleaseFailed || in.ChangeWorkload.CountsAsFailed() {
				t.Fatalf("status is %+v", before)
			}
			tc.fail(&in)
			next := written(in)
			if !next.CountsAsFailed() || reasonOfSucceeded(next) != tc.reason || next.Status.Phase != before.Phase {
				t.Errorf("phase %q, reason %q", next.Status.Phase, reasonOfSucceeded(next))
			}
			if diff := cmp.Diff(before.Announcements, next.Status.Announcements); diff != "" {
				t.Errorf("a second announcement: %s", diff)
			}
		})
	}
}
