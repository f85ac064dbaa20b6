package verdict_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/verdict"
)

func ofOrder(t *testing.T, stage v1alpha1.Stage, word, node string, edit ...func(*events.OrderVerdict)) event.Event {
	t.Helper()
	d := events.OrderVerdict{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, BizExecOrderID: ft.OrderID,
		NodeID: node, Stage: stage, Verdict: word, Message: "because", Time: metav1.NewMicroTime(ft.Now()),
	}
	for _, f := range edit {
		f(&d)
	}
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ofNode(node string) func(*v1alpha1.ChangeWorkload) {
	return func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = node }
}

func TestWhatBecomesOfAVerdictOfAnOrder(t *testing.T) {
	const post = v1alpha1.StagePost
	has := func(word string, unjudged bool) []v1alpha1.StageVerdict {
		return []v1alpha1.StageVerdict{{Stage: post, Verdict: word, Unjudged: unjudged}}
	}
	for name, tc := range map[string]struct {
		had      []v1alpha1.StageVerdict
		node     string
		word     string
		unjudged bool
		asked    bool
		confirm  bool
		want     verdict.Outcome
		then     v1alpha1.Outcome // of the stage
	}{
		"the first word":                      {nil, "o", "pass", false, false, false, verdict.Store, v1alpha1.OutcomePass},
		"a late fail wins over a pass":        {has("pass", false), "o", "fail", false, false, false, verdict.Store, v1alpha1.OutcomeFail},
		"nothing wins over a fail":            {has("fail", false), "o", "pass", false, false, false, verdict.Unchanged, v1alpha1.OutcomeFail},
		"told again":                          {has("pass", false), "o", "pass", false, false, false, verdict.Unchanged, v1alpha1.OutcomePass},
		"a pass without rules is asked about": {nil, "o", "pass", true, false, false, verdict.AskRetrieve, v1alpha1.OutcomePending},
		"and confirmed":                       {nil, "o", "pass", true, true, true, verdict.Store, v1alpha1.OutcomePass},
		"or not":                              {nil, "o", "pass", true, true, false, verdict.Store, v1alpha1.OutcomeNoVerdict},
		"a late judge":                        {has("pass", true), "o", "pass", false, false, false, verdict.Store, v1alpha1.OutcomePass},
		"another node":                        {nil, "x", "fail", false, false, false, verdict.OldNode, v1alpha1.OutcomePending},
	} {
		t.Run(name, func(t *testing.T) {
			w := ft.NewRelease(ofNode("o"), func(w *v1alpha1.ChangeWorkload) { w.Status.OrderVerdicts = tc.had })
			outcome, after := verdict.DecideOrder(verdict.OrderInput{
				Workload: w, Asked: tc.asked, Confirmed: tc.confirm,
				Said: events.OrderVerdict{UID: "release", NodeID: tc.node, Stage: post, Verdict: tc.word, Unjudged: tc.unjudged},
			})
			if got := v1alpha1.VerdictOf(after, post).Outcome(); outcome != tc.want || got != tc.then {
				t.Errorf("%s, and the stage is %s; want %s, %s", outcome, got, tc.want, tc.then)
			}
		})
	}
}

func TestAVerdictOfAnOrderIsStoredOnce(t *testing.T) {
	c, _, function := newFunction(t, ft.NewRelease(ofNode("o")))
	for range 3 {
		if err := function(t.Context(), ofOrder(t, v1alpha1.StagePre, "fail", "o")); err != nil {
			t.Fatal(err)
		}
	}
	status := c.ChangeWorkload(ft.Release).Status
	if c.Patches() != 1 || len(status.OrderVerdicts) != 1 || status.OrderVerdicts[0].Message != "because" {
		t.Errorf("%d patches, %+v", c.Patches(), status.OrderVerdicts)
	}
}

func TestAPassOfAnOrderWithoutRulesIsAskedAbout(t *testing.T) {
	c, j, function := newFunction(t, ft.NewRelease())
	client, _, err := j.Server.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: ft.OrderID}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.StartOrder(t.Context(), altershield.StartOrder{OrderID: ft.OrderID})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := c.ChangeWorkload(ft.Release)
	w.Status.Order.NodeID = answer.NodeID
	c.Write(w)
	bare := func(v *events.OrderVerdict) { v.Unjudged = true }
	if err := function(t.Context(), ofOrder(t, v1alpha1.StagePre, "pass", answer.NodeID, bare)); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangeWorkload(ft.Release).Status.OrderVerdictOf(v1alpha1.StagePre); v == nil || v.Unjudged {
		t.Errorf("the judge confirmed it, and the verdict is %+v", v)
	}
}
