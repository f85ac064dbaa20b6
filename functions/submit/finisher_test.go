package submit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/resend"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// newVerdictFunction returns function verdict with a Finisher, for a batch that function
// submit has started; node is its node.
func newVerdictFunction(t *testing.T, edit ...func(*v1alpha1.ChangeWorkload)) (c *ft.Cluster, server *ft.ServerDouble, finisher *submit.Finisher, function functions.Function, node string) {
	t.Helper()
	c, server, start := newFunction(t, ft.NewRelease(append(edit, unopened)...), ft.NewBatch(1, []string{"a"}))
	if err := start(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	if err := server.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorder := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{})
	finisher = submit.NewFinisher(c.Change, server.Clients, server.Clock, noop.Meter{}).WaitForCalls()
	recorder.SetFollower(finisher)
	return c, server, finisher, verdict.New(recorder, server.Clients, ft.Keys(), nil), c.ChangePod(ft.BatchName(1)).Status.ChangePodID
}

func verdictOf(t *testing.T, stage v1alpha1.Stage, outcome, node string) event.Event {
	t.Helper()
	return ft.SignedVerdict(t, wakeUp(t, receivedVerdict(stage, outcome, node)))
}

func receivedVerdict(stage v1alpha1.Stage, outcome, node string) events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: node, Stage: stage, Verdict: outcome, Message: "because", Time: metav1.NewMicroTime(ft.Now()),
	}
}

func TestTheWriteOfAPREPassFinishesTheBatchAndThatOfItsPOSTPassEndsIt(t *testing.T) {
	c, server, _, function, node := newVerdictFunction(t)
	for _, tc := range []struct {
		stage         v1alpha1.Stage
		reads, writes int
	}{{pre, 1, 1}, {post, 0, 1}} {
		reads, writes := c.Gets("changepods"), c.Patches()
		if err := function(t.Context(), verdictOf(t, tc.stage, "pass", node)); err != nil {
			t.Fatal(err)
		}
		if reads, writes = c.Gets("changepods")-reads, c.Patches()-writes; reads != tc.reads || writes != tc.writes {
			t.Errorf("%s: %d reads and %d writes", tc.stage, reads, writes)
		}
	}
	calls(t, server, open, start, finish)
	status := c.ChangePod(ft.BatchName(1)).Status
	if s := status.SubmissionOf(post); s == nil || s.Attempts != 1 || status.PostSubmitTime == "" {
		t.Errorf("the finish is %+v", s)
	}
	if status.Phase != v1alpha1.BatchExecuteDone || status.Message != string(v1alpha1.BatchPostFinish) || !status.GetCondition(v1alpha1.BatchJudged).IsTrue() {
		t.Errorf("the status is %+v", status)
	}
}

func TestAFailOrARepeatedVerdictFinishesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		verdicts []string
		finishes int
	}{
		"a fail":         {[]string{"fail"}, 0},
		"no verdict":     {[]string{"none"}, 0},
		"a pass, thrice": {[]string{"pass", "pass", "pass"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, server, _, function, node := newVerdictFunction(t)
			for _, v := range tc.verdicts {
				if err := function(t.Context(), verdictOf(t, pre, v, node)); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{open, start}
			if tc.finishes == 1 {
				want = append(want, finish)
			}
			calls(t, server, want...)
		})
	}
}

func TestAnUnconfirmedPREPassFinishesNothing(t *testing.T) {
	c, server, _, function, node := newVerdictFunction(t)
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: retrieve, Fault: double.Fault404}}})
	received := receivedVerdict(pre, "pass", node)
	received.WithoutRules = true
	if err := function(t.Context(), ft.SignedVerdict(t, wakeUp(t, received))); err != nil {
		t.Fatal(err)
	}
	status := c.ChangePod(ft.BatchName(1)).Status
	if v := status.VerdictOf(pre); !v.Unconfirmed() || status.SubmissionOf(post) != nil {
		t.Errorf("the status is %+v", status)
	}
	if n := slices.Index(server.Calls(), finish); n >= 0 {
		t.Errorf("the finish was called: %q", server.Calls())
	}
}

func TestAPOSTPassEndsNoBatchThatAnotherJudgeHasToAnswer(t *testing.T) {
	c, _, _, function, node := newVerdictFunction(t)
	batch := c.ChangePod(ft.BatchName(1))
	batch.Spec.Judges = []v1alpha1.Judge{{Name: v1alpha1.JudgeServer}, {Name: v1alpha1.JudgeMetrics}}
	c.Write(batch)
	for _, stage := range []v1alpha1.Stage{pre, post} {
		if err := function(t.Context(), verdictOf(t, stage, "pass", node)); err != nil {
			t.Fatal(err)
		}
	}
	status := c.ChangePod(ft.BatchName(1)).Status
	if !status.VerdictOf(post).EndsStage() || status.Phase == v1alpha1.BatchExecuteDone {
		t.Errorf("the status is %+v", status)
	}
}

func TestAConcurrentIntentPreventsASecondFinish(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.ChangePod){
		"a finish in flight": func(*v1alpha1.ChangePod) {},
		// Function submit repeats it after a delay.
		"a finish that the server rejected": ft.CallFailed(v1alpha1.ReasonServerRejected),
	} {
		t.Run(name, func(t *testing.T) {
			c, server, _, function, node := newVerdictFunction(t)
			c.BeforeNextPatch(func() {
				batch := c.ChangePod(ft.BatchName(1))
				ft.Intent(post, 0)(batch)
				edit(batch)
				c.Write(batch)
			})
			if err := function(t.Context(), verdictOf(t, pre, "pass", node)); err != nil {
				t.Fatal(err)
			}
			calls(t, server, open, start)
			if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(pre); v == nil {
				t.Error("the verdict is lost")
			}
		})
	}
}

func TestAFinishThatTheServerDoesNotAcceptIsStoredForFunctionSubmit(t *testing.T) {
	c, server, _, function, node := newVerdictFunction(t)
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: finish, Fault: double.Fault404}}})
	if err := function(t.Context(), verdictOf(t, pre, "pass", node)); err != nil {
		t.Fatal(err)
	}
	status := c.ChangePod(ft.BatchName(1)).Status
	if s := status.SubmissionOf(post); status.VerdictOf(pre) == nil || s == nil || s.Error == nil {
		t.Errorf("the status is %+v", status)
	}
}

func TestTheAnswerToAFinishIsStoredIfItsVerdictIsLate(t *testing.T) {
	for name, judged := range map[string]bool{"late": false, "judged": true} {
		t.Run(name, func(t *testing.T) {
			c, server, finisher, function, node := newVerdictFunction(t)
			if err := function(t.Context(), verdictOf(t, pre, "pass", node)); err != nil {
				t.Fatal(err)
			}
			if judged {
				if err := function(t.Context(), verdictOf(t, post, "pass", node)); err != nil {
					t.Fatal(err)
				}
			}
			finisher.StoreAnswers(t.Context(), resend.VerdictDelay)
			if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(post); s.AnsweredTime != nil {
				t.Error("the answer is stored before its verdict is late")
			}
			server.Clock.Step(time.Second)
			finisher.StoreAnswers(t.Context(), resend.VerdictDelay)
			if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(post); (s.AnsweredTime != nil) == judged {
				t.Errorf("the finish is %+v", s)
			}
		})
	}
}
