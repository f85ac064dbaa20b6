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

func taken(o v1alpha1.Outcome) Word { return Word{Outcome: o, Taken: true} }
func sent(o v1alpha1.Outcome) Word  { return Word{Outcome: o} }

func TestTheOutcomesOfAStageFollowFromItsVerdicts(t *testing.T) {
	hollow := Word{Outcome: pass, Hollow: true, Taken: true}
	for name, tc := range map[string]struct {
		stage Stage
		want  Ends
	}{
		"a pass": {Stage{[]Word{taken(pass)}, true}, Ends{Pass: true}},
		"a fail": {Stage{[]Word{taken(fail)}, false}, Ends{Fail: true}},
		"a fail, and a word that may have arrived":       {Stage{[]Word{taken(fail), sent(pass)}, false}, Ends{Fail: true}},
		"a word that is no verdict":                      {Stage{[]Word{taken(none)}, false}, Ends{None: true}},
		"a hollow pass that nobody stands behind":        {Stage{[]Word{hollow}, false}, Ends{None: true}},
		"a hollow pass that retrieve confirms":           {Stage{[]Word{hollow}, true}, Ends{Pass: true, None: true}},
		"a hollow pass, and a real one":                  {Stage{[]Word{hollow, taken(pass)}, true}, Ends{Pass: true}},
		"silence":                                        {Stage{}, Ends{None: true}},
		"silence, and retrieve says pass":                {Stage{Passed: true}, Ends{Pass: true, None: true}},
		"a fail that may have arrived":                   {Stage{[]Word{sent(fail)}, false}, Ends{Fail: true, None: true}},
		"a pass that may have arrived":                   {Stage{[]Word{sent(pass)}, true}, Ends{Pass: true, None: true}},
		"a pass, and a copy of it that may have arrived": {Stage{[]Word{taken(pass), sent(pass)}, true}, Ends{Pass: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.stage.Ends(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheOutcomesOfABatchFollowFromItsStages(t *testing.T) {
	said := func(words ...Word) Stage { return Stage{Words: words} }
	for name, tc := range map[string]struct {
		pre, post Stage
		want      Ends
	}{
		"both pass":                              {said(taken(pass)), said(taken(pass)), Ends{Pass: true}},
		"POST fails":                             {said(taken(pass)), said(taken(fail)), Ends{Fail: true}},
		"PRE fails":                              {said(taken(fail)), said(), Ends{Fail: true}},
		"PRE may have failed, then POST passes":  {said(sent(fail)), said(taken(pass)), Ends{Pass: true, Fail: true}},
		"PRE may have failed, then POST fails":   {said(sent(fail)), said(taken(fail)), Ends{Fail: true}},
		"PRE is inconclusive, POST passes":       {said(taken(none)), said(taken(pass)), Ends{Pass: true}},
		"PRE was heard, POST was not":            {said(taken(pass)), said(), Ends{None: true}},
		"PRE was not heard, and POST not begun":  {Stage{Passed: true}, said(), Ends{None: true}},
		"PRE may have failed, and all is silent": {said(sent(fail)), said(), Ends{Fail: true, None: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Batch{Pre: tc.pre, Post: tc.post}).Ends(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// two returns a release of two pods that passed.
func two(change func(*Release)) Release {
	batch := func(name, pod string) Batch {
		s := Stage{Words: []Word{taken(pass)}, Passed: true}
		return Batch{Name: name, Pods: []string{pod}, Node: "n-" + pod, Done: true, Pre: s, Post: s}
	}
	r := Release{
		Phase: v1alpha1.WorkloadSuccess, Counts: v1alpha1.PodCounts{Pods: 2, Passed: 2}, Replicas: 2,
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
		r.Batches[1].Post = Stage{Words: []Word{taken(fail)}}
		r.Phase, r.Failed, r.Counts = v1alpha1.WorkloadSuspend, []string{"b"}, v1alpha1.PodCounts{Pods: 2, Passed: 1, Failed: 1}
		r.Suspended, r.Paused, r.Complete = true, true, false
		if change != nil {
			change(r)
		}
	})
}

func TestFaultsAreTheContradictionsToTheVerdicts(t *testing.T) {
	maybe := func(r *Release) { r.Batches[1].Post = Stage{Words: []Word{sent(fail)}} }
	for name, tc := range map[string]struct {
		release Release
		want    []string
	}{
		"all passed":                                      {two(nil), nil},
		"one failed":                                      {failed(nil), nil},
		"one failed after the roll-out":                   {failed(func(r *Release) { r.Paused, r.Complete = false, true }), nil},
		"a fail that may have arrived and counts":         {failed(maybe), nil},
		"a fail that may have arrived and does not count": {two(func(r *Release) { maybe(r); r.Counts.Unjudged = 1 }), nil},
		"a fail that is not named": {two(func(r *Release) { r.Batches[1].Post = Stage{Words: []Word{taken(fail)}} }),
			[]string{"lost: pod b failed and is not reported"}},
		"a fail that nobody spoke": {failed(func(r *Release) { r.Failed = []string{"a", "b", "z"} }),
			[]string{"invented: pod a is reported as failed, the verdicts say [pass]", "invented: pod z is reported as failed, the verdicts say []"}},
		"a pod that is reported twice": {failed(func(r *Release) { r.Failed = []string{"b", "b"} }), []string{"pod b is reported twice"}},
		"a fail whose Deployment is free": {failed(func(r *Release) { r.Suspended, r.Paused = false, false }),
			[]string{"a pod failed and the Deployment is not suspended", "a pod failed and the rollout continues"}},
		"a fail that is a Success":   {failed(func(r *Release) { r.Phase = v1alpha1.WorkloadSuccess }), []string{`a pod failed and the release is "Success"`}},
		"a Success that is held":     {two(func(r *Release) { r.Suspended = true }), []string{"no pod failed and the Deployment is suspended=true paused=false complete=true"}},
		"a release that did not end": {two(func(r *Release) { r.Phase = v1alpha1.WorkloadRunning }), []string{`no pod failed and the release is "Running"`}},
		"a pass that counts as unjudged": {two(func(r *Release) { r.Counts.Unjudged = 1 }),
			[]string{"1 pods count as unjudged, by the verdicts it is 0 to 0"}},
		"a silence that counts as judged": {two(func(r *Release) { r.Batches[0].Post = Stage{} }),
			[]string{"0 pods count as unjudged, by the verdicts it is 1 to 1"}},
		"a pod that is not finished": {two(func(r *Release) { r.Pods["b"] = false }), []string{`pod b: finished is false, claimed by "c2"`}},
		"a pod that is not claimed": {two(func(r *Release) { r.Batches[1].Pods = nil }),
			[]string{`pod b: finished is true, claimed by ""`}},
		"a pod that is claimed twice": {two(func(r *Release) { r.Batches[1].Pods = []string{"a", "b"} }),
			[]string{"pod a is claimed by c1 and by c2"}},
		"a batch that is not over": {two(func(r *Release) { r.Batches[0].Done = false }), []string{"batch c1 has not ended; the verdicts say [pass]"}},
		"a batch that nobody told the server of": {two(func(r *Release) {
			r.Batches[0].Node, r.Batches[0].Pre, r.Batches[0].Post, r.Counts.Unjudged = "", Stage{}, Stage{}, 1
		}), []string{"batch c1 was never sent to the server"}},
		"a verdict that waits for ever": {two(func(r *Release) { r.Inbox = 1 }), []string{"1 verdicts are left in the inbox"}},
		"pods that are missing": {two(func(r *Release) { r.Replicas = 3 }),
			[]string{"3 replicas, 2 pods exist, the counts are {Pods:2 Preparing:0 Checking:0 Passed:2 Failed:0 Unjudged:0}"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Faults(tc.release)); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}
