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

func orderVerdictOf(t *testing.T, stage v1alpha1.Stage, verdict, node string, edit ...func(*events.OrderVerdict)) event.Event {
	t.Helper()
	d := events.OrderVerdict{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, BizExecOrderID: ft.OrderID,
		NodeID: node, Stage: stage, Verdict: verdict, Message: "because", Time: metav1.NewMicroTime(ft.Now()),
	}
	for _, f := range edit {
		f(&d)
	}
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedVerdict(t, e)
}

func withNode(node string) func(*v1alpha1.ChangeWorkload) {
	return func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = node }
}

func TestDecideForAVerdictOfAnOrder(t *testing.T) {
	const post = v1alpha1.StagePost
	stored := func(verdict string, withoutRules bool) []v1alpha1.StageVerdict {
		return []v1alpha1.StageVerdict{{Stage: post, Verdict: verdict, UnconfirmedPass: withoutRules}}
	}
	for name, tc := range map[string]struct {
		stored       []v1alpha1.StageVerdict
		node         string
		verdict      string
		withoutRules bool
		retrieved    verdict.Retrieved
		want         verdict.Action
		wantStage    v1alpha1.Outcome
	}{
		"first":                            {nil, "o", "pass", false, "", verdict.Store, v1alpha1.OutcomePass},
		"fail after a pass":                {stored("pass", false), "o", "fail", false, "", verdict.Store, v1alpha1.OutcomeFail},
		"pass after a fail":                {stored("fail", false), "o", "pass", false, "", verdict.Unchanged, v1alpha1.OutcomeFail},
		"duplicate":                        {stored("pass", false), "o", "pass", false, "", verdict.Unchanged, v1alpha1.OutcomePass},
		"pass without rules":               {nil, "o", "pass", true, "", verdict.AskRetrieve, v1alpha1.OutcomePending},
		"pass without rules, confirmed":    {nil, "o", "pass", true, verdict.RetrievedPass, verdict.Store, v1alpha1.OutcomePass},
		"pass without rules, no answer":    {nil, "o", "pass", true, verdict.RetrievedNothing, verdict.Store, v1alpha1.OutcomePending},
		"pass without rules, contradicted": {nil, "o", "pass", true, verdict.RetrievedOther, verdict.Store, v1alpha1.OutcomePending},
		"pass after an unconfirmed pass":   {stored("pass", true), "o", "pass", false, "", verdict.Store, v1alpha1.OutcomePass},
		"fail after an unconfirmed pass":   {stored("pass", true), "o", "fail", false, "", verdict.Store, v1alpha1.OutcomeFail},
		"fail of an earlier node":          {nil, "earlier", "fail", false, "", verdict.Store, v1alpha1.OutcomeFail},
		"for another node":                 {nil, "x", "fail", false, "", verdict.UnknownNode, v1alpha1.OutcomePending},
	} {
		t.Run(name, func(t *testing.T) {
			w := ft.NewRelease(withNode("o"), func(w *v1alpha1.ChangeWorkload) {
				w.Status.OrderVerdicts = tc.stored
				w.Status.Order.Submissions = []v1alpha1.Submission{{Stage: v1alpha1.StagePre, EarlierNodes: []string{"earlier"}}}
			})
			action, after := verdict.DecideOrder(verdict.OrderInput{
				Release: w, Retrieved: tc.retrieved,
				Received: events.OrderVerdict{UID: "release", NodeID: tc.node, Stage: post, Verdict: tc.verdict, WithoutRules: tc.withoutRules},
			})
			if got := v1alpha1.VerdictOf(after, post).Outcome(); action != tc.want || got != tc.wantStage {
				t.Errorf("%s, and the stage is %s; want %s, %s", action, got, tc.want, tc.wantStage)
			}
		})
	}
}

func TestAVerdictOfAnOrderIsStoredOnce(t *testing.T) {
	c, _, function := newFunction(t, ft.NewRelease(withNode("o")))
	for range 3 {
		if err := function(t.Context(), orderVerdictOf(t, v1alpha1.StagePre, "fail", "o")); err != nil {
			t.Fatal(err)
		}
	}
	status := c.ChangeWorkload(ft.Release).Status
	if c.Patches() != 1 || len(status.OrderVerdicts) != 1 || status.OrderVerdicts[0].Message != "because" {
		t.Errorf("%d patches, %+v", c.Patches(), status.OrderVerdicts)
	}
}

func TestAPassOfAnOrderWithoutRulesIsRetrieved(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease())
	client, _, err := server.Clients.Client(t.Context())
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
	if err := server.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := c.ChangeWorkload(ft.Release)
	w.Status.Order.NodeID = answer.NodeID
	c.Write(w)
	withoutRules := func(v *events.OrderVerdict) { v.WithoutRules = true }
	if err := function(t.Context(), orderVerdictOf(t, v1alpha1.StagePre, "pass", answer.NodeID, withoutRules)); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangeWorkload(ft.Release).Status.OrderVerdictOf(v1alpha1.StagePre); v == nil || v.UnconfirmedPass {
		t.Errorf("confirmed verdict is %+v", v)
	}
}
