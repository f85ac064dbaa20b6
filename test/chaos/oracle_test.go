package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	pass = v1alpha1.OutcomePass
	fail = v1alpha1.OutcomeFail
	none = v1alpha1.OutcomeNoVerdict
)

func accepted(o v1alpha1.Outcome) Verdict { return Verdict{Outcome: o, Accepted: true} }
func sent(o v1alpha1.Outcome) Verdict     { return Verdict{Outcome: o} }

func TestTheOutcomesOfAStageFollowFromItsVerdicts(t *testing.T) {
	withoutRules := Verdict{Outcome: pass, WithoutRules: true, Accepted: true}
	for name, tc := range map[string]struct {
		stage Stage
		want  Outcomes
	}{
		"a pass": {Stage{[]Verdict{accepted(pass)}, true}, Outcomes{Pass: true}},
		"a fail": {Stage{[]Verdict{accepted(fail)}, false}, Outcomes{Fail: true}},
		"a fail, and a pass that may have arrived": {Stage{[]Verdict{accepted(fail), sent(pass)}, false}, Outcomes{Fail: true}},
		"no verdict": {Stage{[]Verdict{accepted(none)}, false}, Outcomes{None: true}},
		"a pass without rules that retrieve does not confirm": {Stage{[]Verdict{withoutRules}, false}, Outcomes{None: true}},
		"a pass without rules that retrieve confirms":         {Stage{[]Verdict{withoutRules}, true}, Outcomes{Pass: true, None: true}},
		"a pass without rules, and one with rules":            {Stage{[]Verdict{withoutRules, accepted(pass)}, true}, Outcomes{Pass: true}},
		"no callback":                                    {Stage{}, Outcomes{None: true}},
		"no callback, and retrieve returns pass":         {Stage{Passed: true}, Outcomes{Pass: true, None: true}},
		"a fail that may have arrived":                   {Stage{[]Verdict{sent(fail)}, false}, Outcomes{Fail: true, None: true}},
		"a pass that may have arrived":                   {Stage{[]Verdict{sent(pass)}, true}, Outcomes{Pass: true, None: true}},
		"a pass, and a copy of it that may have arrived": {Stage{[]Verdict{accepted(pass), sent(pass)}, true}, Outcomes{Pass: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.stage.Outcomes(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheOutcomesOfABatchFollowFromItsStages(t *testing.T) {
	stage := func(verdicts ...Verdict) Stage { return Stage{Verdicts: verdicts} }
	for name, tc := range map[string]struct {
		pre, post Stage
		want      Outcomes
	}{
		"both pass":                                 {stage(accepted(pass)), stage(accepted(pass)), Outcomes{Pass: true}},
		"POST fails":                                {stage(accepted(pass)), stage(accepted(fail)), Outcomes{Fail: true}},
		"PRE fails":                                 {stage(accepted(fail)), stage(), Outcomes{Fail: true}},
		"PRE may have failed, then POST passes":     {stage(sent(fail)), stage(accepted(pass)), Outcomes{Pass: true, Fail: true}},
		"PRE may have failed, then POST fails":      {stage(sent(fail)), stage(accepted(fail)), Outcomes{Fail: true}},
		"PRE is inconclusive, POST passes":          {stage(accepted(none)), stage(accepted(pass)), Outcomes{Pass: true}},
		"PRE passes, POST has no callback":          {stage(accepted(pass)), stage(), Outcomes{None: true}},
		"PRE has no callback, POST was not started": {Stage{Passed: true}, stage(), Outcomes{None: true}},
		"PRE may have failed, no other callback":    {stage(sent(fail)), stage(), Outcomes{Fail: true, None: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Batch{Pre: tc.pre, Post: tc.post}).Outcomes(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// two returns a release of two pods that passed.
func two(change func(*Release)) Release {
	batch := func(name, pod string) Batch {
		s := Stage{Verdicts: []Verdict{accepted(pass)}, Passed: true}
		return Batch{Name: name, Pods: []string{pod}, Node: "n-" + pod, Done: true, Pre: s, Post: s}
	}
	r := Release{
		Phase: v1alpha1.ReleaseSuccess, Counts: v1alpha1.PodCounts{Pods: 2, Passed: 2}, Replicas: 2,
		Batches: []Batch{batch("c1", "a"), batch("c2", "b")}, Pods: map[string]bool{"a": true, "b": true}, Complete: true,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// failed returns a release in which pod b failed and is reported.
func failed(change func(*Release)) Release {
	return two(func(r *Release) {
		r.Batches[1].Post = Stage{Verdicts: []Verdict{accepted(fail)}}
		r.Phase, r.Failed, r.Counts = v1alpha1.ReleaseSuspend, []string{"b"}, v1alpha1.PodCounts{Pods: 2, Passed: 1, Failed: 1}
		r.Suspended, r.Paused, r.Complete = true, true, false
		if change != nil {
			change(r)
		}
	})
}

func TestFaultsAreTheContradictionsToTheVerdicts(t *testing.T) {
	maybe := func(r *Release) { r.Batches[1].Post = Stage{Verdicts: []Verdict{sent(fail)}} }
	for name, tc := range map[string]struct {
		release Release
		want    []string
	}{
		"all passed":                   {two(nil), nil},
		"one failed":                   {failed(nil), nil},
		"one failed after the rollout": {failed(func(r *Release) { r.Paused, r.Complete = false, true }), nil},
		"a fail that may have arrived and counts":         {failed(maybe), nil},
		"a fail that may have arrived and does not count": {two(func(r *Release) { maybe(r); r.Counts.Unjudged = 1 }), nil},
		"a fail that is not reported": {two(func(r *Release) { r.Batches[1].Post = Stage{Verdicts: []Verdict{accepted(fail)}} }),
			[]string{"lost: pod b failed and is not reported"}},
		"a fail without a verdict": {failed(func(r *Release) { r.Failed = []string{"a", "b", "z"} }),
			[]string{"invented: pod a is reported as failed; permitted: [pass]", "invented: pod z is reported as failed; permitted: []"}},
		"a pod that is reported twice": {failed(func(r *Release) { r.Failed = []string{"b", "b"} }), []string{"pod b is reported twice"}},
		"a fail whose Deployment is not suspended": {failed(func(r *Release) { r.Suspended, r.Paused = false, false }),
			[]string{"a pod failed and the Deployment is not suspended", "a pod failed and the rollout continues"}},
		"a fail that is a Success":    {failed(func(r *Release) { r.Phase = v1alpha1.ReleaseSuccess }), []string{`a pod failed and the release is "Success"`}},
		"a Success that is suspended": {two(func(r *Release) { r.Suspended = true }), []string{"no pod failed and the Deployment is suspended=true paused=false complete=true"}},
		"a release that did not end":  {two(func(r *Release) { r.Phase = v1alpha1.ReleaseRunning }), []string{`no pod failed and the release is "Running"`}},
		"a pass that counts as unjudged": {two(func(r *Release) { r.Counts.Unjudged = 1 }),
			[]string{"1 pods count as unjudged; permitted: 0 to 0"}},
		"no callback, counted as judged": {two(func(r *Release) { r.Batches[0].Post = Stage{} }),
			[]string{"0 pods count as unjudged; permitted: 1 to 1"}},
		"a batch that was started more often than recorded": {two(func(r *Release) { r.Batches[0].Starts, r.Batches[0].StartAttempts = 2, 1 }),
			[]string{"batch c1 was started 2 times in 1 attempts and finished 0 times in 0 attempts"}},
		"a batch that was finished more often than recorded": {two(func(r *Release) { r.Batches[0].Finishes = 1 }),
			[]string{"batch c1 was started 0 times in 0 attempts and finished 1 times in 0 attempts"}},
		"an attempt that did not reach the server": {two(func(r *Release) { r.Batches[0].StartAttempts = 2 }), nil},
		"a pod that is not finished":               {two(func(r *Release) { r.Pods["b"] = false }), []string{`pod b: finished is false, claimed by "c2"`}},
		"a pod that is not claimed": {two(func(r *Release) { r.Batches[1].Pods = nil }),
			[]string{`pod b: finished is true, claimed by ""`}},
		"a pod that is claimed twice": {two(func(r *Release) { r.Batches[1].Pods = []string{"a", "b"} }),
			[]string{"pod a is claimed by c1 and by c2"}},
		"a batch that has not ended": {two(func(r *Release) { r.Batches[0].Done = false }), []string{"batch c1 has not ended; permitted: [pass]"}},
		"a batch that was never sent to the server": {two(func(r *Release) {
			r.Batches[0].Node, r.Batches[0].Pre, r.Batches[0].Post, r.Counts.Unjudged = "", Stage{}, Stage{}, 1
		}), []string{"batch c1 was never sent to the server"}},
		"a verdict that is left in the inbox": {two(func(r *Release) { r.Inbox = 1 }), []string{"1 verdicts are left in the inbox"}},
		"pods that are missing": {two(func(r *Release) { r.Replicas = 3 }),
			[]string{"3 replicas, 2 pods exist, the counts are {Pods:2 Preparing:0 Checking:0 Passed:2 Failed:0 Unjudged:0}"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Violations(tc.release)); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}

func TestFormerChangeWorkloadsHaveEndedOrAreDeleted(t *testing.T) {
	const success, suspend, running = v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend, v1alpha1.ReleaseRunning
	for name, tc := range map[string]struct {
		current v1alpha1.ReleasePhase
		former  Former
		want    []string
	}{
		"after a Success":        {success, Former{"c", success, 0, true}, []string{"former ChangeWorkload c (Success) is left after a Success"}},
		"after a fail":           {suspend, Former{"c", success, 0, true}, nil},
		"a repaired fail":        {suspend, Former{"c", suspend, 0, true}, nil},
		"a superseded release":   {suspend, Former{"c", v1alpha1.ReleaseFailed, 0, true}, nil},
		"one that has not ended": {suspend, Former{"c", running, 0, true}, []string{`former ChangeWorkload c has not ended: "Running"`}},
		"an order that is open":  {suspend, Former{"c", success, 0, false}, []string{"the order of former ChangeWorkload c is not closed"}},
		"a verdict in the inbox": {suspend, Former{"c", success, 1, true}, []string{"1 verdicts are left in the inbox of former ChangeWorkload c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FormerViolations(tc.current, []Former{tc.former})); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}
