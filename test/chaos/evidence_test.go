package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	double "github.com/breakwater-dev/breakwater/test/altershield"
)

func TestEvidenceHasTheVerdictsOfTheStage(t *testing.T) {
	const empty, ruled = `{"callbackRequest":{"verdict":{"rules":[]}}}`, `{"callbackRequest":{"verdict":{"rules":[{}]}}}`
	callback := func(c double.CallbackEntry) double.CallbackEntry {
		if c.Node == "" {
			c.Node, c.Stage = "n", double.Post
		}
		if c.As == "" {
			c.As = "json"
		}
		return c
	}
	e := Evidence{Nodes: []double.Node{
		{ID: "other", Passed: map[double.Stage]bool{double.Pre: true}},
		{ID: "n", Passed: map[double.Stage]bool{double.Post: true}},
	}}
	for _, c := range []double.CallbackEntry{
		{Verdict: "pass", Body: ruled, Status: 200},
		{Verdict: "pass", Body: empty, Status: 200},
		{Verdict: "pass", As: "binary", Body: `{}`, Status: 200},
		{Verdict: "unpass", Body: ruled, Status: 0},
		{Verdict: "xyz", Body: ruled, Status: 503},
		{Verdict: "fail", Body: ruled, Status: 401},
		{Verdict: "fail", Body: ruled, Status: 200, Node: "other", Stage: double.Post},
		{Verdict: "fail", Body: ruled, Status: 200, Node: "n", Stage: double.Pre},
	} {
		e.Log.Callbacks = append(e.Log.Callbacks, callback(c))
	}
	want := Stage{Passed: true, Verdicts: []Verdict{
		{Outcome: pass, Accepted: true},
		{Outcome: pass, Accepted: true, WithoutRules: true},
		{Outcome: pass, Accepted: true},
		{Outcome: fail},
		{Outcome: none},
	}}
	if diff := cmp.Diff(want, e.Stage("n", double.Post)); diff != "" {
		t.Error("(-want +got)", diff)
	}
	if got := e.Stage("n", double.Pre); got.Passed || len(got.Verdicts) != 1 {
		t.Errorf("PRE is %+v", got)
	}
}
