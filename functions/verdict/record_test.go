package verdict_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

func newFunction(t *testing.T, objects ...runtime.Object) (*ft.Cluster, *ft.ServerDouble, functions.Function) {
	c := ft.New(t, objects...)
	server := ft.NewServerDouble(t, c, "")
	recorder := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{})
	return c, server, verdict.New(recorder, server.Clients, ft.Keys(), eventsigning.NewJudgeKeys(c.Kube.CoreV1(), server.Clock))
}

func verdictOf(t *testing.T, stage v1alpha1.Stage, verdict, node string, edit ...func(*events.ChangePodVerdict)) event.Event {
	t.Helper()
	d := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: node, Stage: stage, Verdict: verdict, Message: "because",
		Time: metav1.NewMicroTime(ft.Now()),
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

func withoutRules(v *events.ChangePodVerdict) { v.WithoutRules = true }

func TestAVerdictIsStoredOnce(t *testing.T) {
	c, _, function := newFunction(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	for range 3 {
		if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "fail", "n")); err != nil {
			t.Fatal(err)
		}
	}
	status := c.ChangePod(ft.BatchName(1)).Status
	if c.Patches() != 1 || len(status.Verdicts) != 1 || status.ResultOf("a").Verdict != "fail" {
		t.Errorf("%d patches, status %+v", c.Patches(), status)
	}
}

func TestAVerdictWithACopyOfTheBatchNeedsNoRead(t *testing.T) {
	c, _, function := newFunction(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	copied := func(v *events.ChangePodVerdict) { v.ChangePod = c.ChangePod(ft.BatchName(1)) }
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePre, "pass", "n", copied)); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePre); v == nil || v.Verdict != "pass" || c.Gets("changepods") > 0 {
		t.Errorf("verdict is %v after %d reads", v, c.Gets("changepods"))
	}
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "fail", "n")); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePost); v == nil || v.Verdict != "fail" || c.Gets("changepods") > 0 {
		t.Errorf("POST verdict is %v after %d reads", v, c.Gets("changepods"))
	}
}

func TestAVerdictWithAnOutdatedCopyOfTheBatchIsDecidedOnTheBatch(t *testing.T) {
	for name, tc := range map[string]struct {
		since, copy func(*v1alpha1.ChangePod)
		want        string
	}{
		"a fail was stored since":     {since: ft.Judged(v1alpha1.StagePre, "fail"), want: "fail"},
		"the copy looks judged":       {copy: ft.Judged(v1alpha1.StagePre, "fail"), want: "pass"},
		"the copy has no node":        {copy: func(p *v1alpha1.ChangePod) { p.Status.ChangePodID = "" }, want: "pass"},
		"another field changed since": {since: func(p *v1alpha1.ChangePod) { p.Status.Message = "m" }, want: "pass"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, function := newFunction(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			batch := c.Copy(ft.BatchName(1), tc.since, tc.copy)
			if err := function(t.Context(), verdictOf(t, v1alpha1.StagePre, "pass", "n", func(v *events.ChangePodVerdict) { v.ChangePod = batch })); err != nil {
				t.Fatal(err)
			}
			if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePre); v == nil || v.Verdict != tc.want {
				t.Errorf("verdict is %v", v)
			}
		})
	}
}

func TestAConcurrentResultOfAPersonIsKept(t *testing.T) {
	c, _, function := newFunction(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	c.BeforeNextPatch(func() {
		batch := c.ChangePod(ft.BatchName(1))
		batch.Status.PodResults = []v1alpha1.PodSummary{{Pod: "a", Verdict: "pass", Message: "I looked"}}
		c.Write(batch)
	})
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "fail", "n")); err != nil {
		t.Fatal(err)
	}
	status := c.ChangePod(ft.BatchName(1)).Status
	want := &v1alpha1.PodSummary{Pod: "a", Verdict: "pass", Message: "I looked"}
	if diff := cmp.Diff(want, status.ResultOf("a")); diff != "" {
		t.Error(diff)
	}
	if v := status.VerdictOf(v1alpha1.StagePost); v == nil || v.Verdict != "fail" {
		t.Errorf("verdict of the server is %v", v)
	}
}

func TestOfTwoConcurrentVerdictsTheFailIsKept(t *testing.T) {
	c, _, function := newFunction(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	c.BeforeNextPatch(func() {
		batch := c.ChangePod(ft.BatchName(1))
		ft.Judged(v1alpha1.StagePost, "fail")(batch)
		c.Write(batch)
	})
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "pass", "n")); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePost); v.Verdict != "fail" {
		t.Errorf("verdict is %v", v)
	}
}

func TestAPassWithoutRulesCountsOnlyIfRetrieveConfirmsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		script                     double.Script
		withoutRules, contradicted bool
	}{
		"check passed":       {double.Script{Default: double.Behaviour{NoRules: true}}, false, false},
		"check timed out":    {double.Script{Default: double.Behaviour{Ending: double.TimedOut}}, true, true},
		"check threw":        {double.Script{Default: double.Behaviour{Ending: double.Threw}}, true, true},
		"server unreachable": {double.Script{Faults: []double.FaultRule{{Action: "retrieveChangeCheck", Fault: double.Fault404}}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t)
			server.Script(t, tc.script)
			node := server.NewNode(t)
			if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Started(node, 0))); err != nil {
				t.Fatal(err)
			}
			if err := function(t.Context(), verdictOf(t, v1alpha1.StagePre, "pass", node, withoutRules)); err != nil {
				t.Fatal(err)
			}
			if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePre); v == nil || v.UnconfirmedPass != tc.withoutRules || v.Contradicted != tc.contradicted {
				t.Errorf("verdict is %+v", v)
			}
		})
	}
}

func TestWithoutAServerAPassWithoutRulesIsNotConfirmed(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	server := ft.NewServerDouble(t, ft.New(t), "")
	recorder := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{})
	function := verdict.New(recorder, functions.NewClientSource(c.Kube), ft.Keys(), eventsigning.NewJudgeKeys(c.Kube.CoreV1(), server.Clock))
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePre, "pass", "n", withoutRules)); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(v1alpha1.StagePre); !v.Unconfirmed() || v.Contradicted {
		t.Errorf("verdict is %+v", v)
	}
}

func TestAnOutdatedVerdictHasNoEffect(t *testing.T) {
	for name, batch := range map[string]*v1alpha1.ChangePod{
		"batch deleted":       ft.NewBatch(2, []string{"a"}, ft.Started("n", 0)),
		"batch replaced":      ft.NewBatch(1, []string{"a"}, ft.Started("n", 0), func(p *v1alpha1.ChangePod) { p.UID = "later" }),
		"batch started again": ft.NewBatch(1, []string{"a"}, ft.Started("n2", 0)),
		"batch not started":   ft.NewBatch(1, []string{"a"}),
	} {
		t.Run(name, func(t *testing.T) {
			c, _, function := newFunction(t, batch)
			if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "fail", "n")); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if c.Patches() != 0 {
				t.Error("the status was written")
			}
		})
	}
}

func TestAnInvalidEventIsAPermanentError(t *testing.T) {
	_, _, function := newFunction(t)
	e := verdictOf(t, v1alpha1.StagePost, "fail", "n")
	if err := e.SetData(event.ApplicationJSON, map[string]string{"stage": "LATER"}); err != nil {
		t.Fatal(err)
	}
	if result := functions.ResultOf(function(t.Context(), e)); result != functions.ResultPermanent {
		t.Errorf("result is %s", result)
	}
}
