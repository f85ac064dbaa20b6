package altershielddouble

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAResubmitRunsOnlyACheckThatHasEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		behaviour string
		code      string
		// message is a part of the message; callbacks are those of the resubmitted
		// check.
		message   string
		callbacks int
	}{
		"the check never began":       {`{"forgotten":true}`, "103", "in PRE_AOP_SUBMIT, ", 0},
		"the check runs":              {`{"never":true}`, "103", "in PRE_AOP, ", 0},
		"the check passed":            {`{}`, "000", "", 1},
		"the check timed out":         {`{"ending":"timeout"}`, "000", "", 1},
		"the check crashed":           {`{"ending":"exception"}`, "000", "", 1},
		"the callback of it was lost": {`{"lost":true}`, "000", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.setScript(t, `{"default":`+tc.behaviour+`}`)
			node := f.started(t)
			f.idle(t)
			before := len(f.bodies(t))
			f.setScript(t, `{}`)
			got := f.call(t, actionResubmit, nodeBody(node, nil))
			if got.code() != tc.code || !strings.Contains(got.raw, tc.message) {
				t.Fatalf("got %s", got.raw)
			}
			f.idle(t)
			if n := len(f.bodies(t)) - before; n != tc.callbacks {
				t.Errorf("%d callbacks, want %d", n, tc.callbacks)
			}
			if tc.code == "000" && (f.state(node) != PreFinish || got.node() != node || len(f.Nodes()) != 1) {
				t.Errorf("the node is %+v", f.Nodes())
			}
		})
	}
	f := newFixture(t, nil)
	node := f.started(t)
	f.idle(t)
	f.call(t, actionFinish, nodeBody(node, nil))
	f.idle(t)
	for _, id := range []string{node, "none"} {
		if got := f.call(t, actionResubmit, nodeBody(id, nil)); got.code() != "103" {
			t.Errorf("%s after POST: %s", id, got.raw)
		}
	}
}

func TestAForgottenCheckRejectsTheFinish(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"default":{"forgotten":true},"checkTimeout":"1s"}`)
	node := f.started(t)
	f.idle(t)
	if got := f.call(t, actionFinish, nodeBody(node, nil)); got.code() != "103" || !strings.Contains(got.raw, "in PRE_AOP_SUBMIT, ") {
		t.Error(got.raw)
	}
}

func TestAForgottenCheckIsTakenUpLater(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"checks":[{"match":{"stage":"PRE"},"nth":1,"then":{"forgotten":true}},{"match":{"stage":"POST"},"nth":1,"then":{"forgotten":true}}]}`)
	node := f.started(t)
	for _, want := range []State{PreFinish, PostFinish} {
		f.idle(t)
		before := len(f.bodies(t))
		f.TakeUp(node)
		f.idle(t)
		f.TakeUp(node) // the check has ended
		f.idle(t)
		if got, n := f.state(node), len(f.bodies(t))-before; got != want || n != 1 {
			t.Errorf("%s after %d callbacks, want %s after one", got, n, want)
		}
		f.call(t, actionFinish, nodeBody(node, nil))
	}
}

func TestAPrematureCallbackPassesACheckThatFails(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"checks":[{"match":{"stage":"POST"},"then":{"premature":true,"verdict":"fail","delay":"25ms"}}]}`)
	node := f.started(t)
	f.idle(t)
	f.call(t, actionFinish, nodeBody(node, nil))
	f.await(t) // of PRE
	f.await(t)
	retrieve := func() string {
		return f.call(t, actionRetrieve, nodeBody(node, map[string]any{"defenseStage": Post})).raw
	}
	if got := retrieve(); !strings.Contains(got, `"verdict":"fail"`) {
		t.Errorf("while the check runs: %s", got)
	}
	f.step(t, 25*time.Millisecond)
	f.idle(t)
	if got := retrieve(); !strings.Contains(got, `"verdict":"fail"`) {
		t.Errorf("after the check: %s", got)
	}
	var sent []string
	for _, b := range f.bodies(t) {
		v := b.CallbackRequest
		sent = append(sent, fmt.Sprintf("%s %s with %d rules", v.DefenseStageEnum, v.Verdict.Verdict, len(v.Verdict.Rules)))
	}
	if diff := cmp.Diff([]string{"PRE pass with 1 rules", "POST pass with 0 rules"}, sent); diff != "" {
		t.Error(diff)
	}
}

func TestASecondFinishIsCalledBackAtItsRate(t *testing.T) {
	for rate, want := range map[string]int{"0": 0, "1": 1} {
		f := newFixture(t, nil)
		f.setScript(t, `{"secondFinish":`+rate+`,"checks":[{"match":{"stage":"POST"},"then":{"verdict":"fail"}}]}`)
		node := f.started(t)
		f.idle(t)
		for range 2 {
			if got := f.call(t, actionFinish, nodeBody(node, nil)); got.code() != "000" {
				t.Fatal(got.raw)
			}
			f.idle(t)
		}
		fails := 0
		for _, b := range f.bodies(t) {
			if b.CallbackRequest.Verdict.Verdict == "fail" {
				fails++
			}
		}
		if fails != 1+want {
			t.Errorf("rate %s: %d callbacks of POST, want %d", rate, fails, 1+want)
		}
	}
}

func TestARuleAppliesAtItsRateAndRepeatably(t *testing.T) {
	rule := func(rate float64) Script {
		return Script{Seed: 7, Checks: []CheckRule{{Rate: rate, Then: Behaviour{Forgotten: true}}}}
	}
	run := func(s Script) (chosen string, n int) {
		p := newProgress(s)
		for range 1000 {
			if s.behaviour(p, facts{Stage: Pre, Step: stepBatch}).Forgotten {
				n++
				chosen += "x"
			} else {
				chosen += "-"
			}
		}
		return chosen, n
	}
	first, n := run(rule(0.03))
	if n < 15 || n > 50 {
		t.Errorf("a rate of 3 %% applies to %d of 1000 checks", n)
	}
	if again, _ := run(rule(0.03)); again != first {
		t.Error("the same seed selects other checks")
	}
	if _, n := run(rule(0)); n != 1000 {
		t.Errorf("without a rate, the rule applies to %d of 1000 checks", n)
	}
	if _, n := run(rule(1)); n != 1000 {
		t.Errorf("a rate of 1 applies to %d of 1000 checks", n)
	}
}
