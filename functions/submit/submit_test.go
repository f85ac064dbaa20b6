package submit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const (
	startOrder, closeOrder        = "submitChangeExecOrderStartNotify", "finishChangeExecOrderAction"
	open, start, finish, retrieve = "submitChangeExecOrder", "submitChangeExecBatchStartNotify", "submitChangeFinishNotify", "retrieveChangeCheck"

	pre, post = v1alpha1.StagePre, v1alpha1.StagePost
)

func newFunction(t *testing.T, objects ...runtime.Object) (*ft.Cluster, *ft.ServerDouble, functions.Function) {
	t.Helper()
	c := ft.New(t, objects...)
	server := ft.NewServerDouble(t, c, "")
	return c, server, functionOf(t, c, server)
}

func functionOf(t *testing.T, c *ft.Cluster, server *ft.ServerDouble) functions.Function {
	t.Helper()
	recorder := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{})
	return submit.New(c.Change, server.Clients, recorder, ft.EventKeys(), server.Clock, noop.Meter{})
}

// wakeUp returns an event as the controller sends it.
func wakeUp(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedByController(t, e)
}

func ready(t *testing.T, stage v1alpha1.Stage) event.Event { return readyOf(t, 1, stage) }

// readyOf returns a wake-up for the nth batch, from 1.
func readyOf(t *testing.T, n int, stage v1alpha1.Stage) event.Event {
	return wakeUp(t, events.ChangePodReady{
		Namespace: ft.Namespace, Name: ft.BatchName(n), UID: types.UID(fmt.Sprintf("batch-%d", n)), ChangeWorkload: ft.Release,
		Version: ft.Version, Attempt: 1, Stage: stage,
	})
}

// orderStartReady returns a wake-up for the start of the order.
func orderStartReady(t *testing.T) event.Event {
	return wakeUp(t, events.OrderReady{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, Attempt: 1, Step: v1alpha1.OrderStepStart,
	})
}

// unopened makes the release a new one without an order.
func unopened(w *v1alpha1.ChangeWorkload) {
	w.Status.Order = nil
	w.Status.OrderStep = &v1alpha1.OrderStep{Name: v1alpha1.OrderStepStart}
}

// calls checks the calls that the server has received.
func calls(t *testing.T, server *ft.ServerDouble, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, server.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTheStartAndTheFinishOfABatchAreCalledOnce(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	for _, e := range []event.Event{orderStartReady(t), orderStartReady(t), ready(t, pre), ready(t, pre), ready(t, pre)} {
		if err := function(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	calls(t, server, open, startOrder, start)
	batch := c.ChangePod(ft.BatchName(1))
	node := server.Nodes()[1].ID // the first is the order's
	if batch.Status.ChangePodID != node || batch.Status.PreSubmitTime == "" || batch.Status.SubmissionOf(pre).Attempts != 1 {
		t.Fatalf("status is %+v", batch.Status)
	}
	ft.Judged(pre, "pass")(batch)
	c.Write(batch)
	if err := server.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := function(t.Context(), ready(t, post)); err != nil {
			t.Fatal(err)
		}
	}
	calls(t, server, open, startOrder, start, finish)
	if s := c.ChangePod(ft.BatchName(1)).Status; s.PostSubmitTime == "" || s.SubmissionOf(post).AnsweredTime == nil {
		t.Errorf("status is %+v", s)
	}
}

func TestTheOrderIsOpenedBeforeTheFirstStart(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, start)
	if o := c.ChangeWorkload(ft.Release).Status.Order; o == nil || o.ID == "" || o.OpenedTime == nil {
		t.Errorf("order is %+v", o)
	}
}

func TestOnlyTheWriterOfTheIntentCalls(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
	c.BeforeNextPatch(func() {
		batch := c.ChangePod(ft.BatchName(1))
		ft.Intent(pre, time.Second)(batch)
		c.Write(batch)
	})
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	calls(t, server)
	if n := c.Patches(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestAnExpiredIntentIsReplaced(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}, ft.Intent(pre, time.Minute)))
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, start)
	if s := c.ChangePod(ft.BatchName(1)).Status; s.SubmissionOf(pre).Attempts != 2 || s.ChangePodID == "" {
		t.Errorf("status is %+v", s)
	}
}

func TestTheAnswerToAnEarlierCallIsIgnored(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	server.Script(t, double.Script{})
	// Another process writes an intent before the third patch, that of the answer.
	replaceIntent := func() {
		batch := c.ChangePod(ft.BatchName(1))
		batch.Status.Submissions[0].Attempts++
		c.Write(batch)
	}
	c.BeforePatch(3, replaceIntent)
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	if s := c.ChangePod(ft.BatchName(1)).Status; s.ChangePodID != "" || s.SubmissionOf(pre).AnsweredTime != nil {
		t.Errorf("status is %+v", s)
	}
}

func TestARejectionIsStoredAndNotRetried(t *testing.T) {
	// The server does not know the order.
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatalf("got %v, want no error: the server would reject a retry", err)
	}
	calls(t, server, start)
	if e := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(pre).Error; e == nil || e.Reason != v1alpha1.ReasonServerRejected {
		t.Errorf("error is %+v", e)
	}
}

func TestAnUnreachableServerIsStoredAndRetried(t *testing.T) {
	for name, fault := range map[string]double.Fault{"502": double.Fault502, "reset": double.FaultReset, "901": double.Fault901} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
			server.Script(t, double.Script{Faults: []double.FaultRule{{Action: start, Fault: fault}}})
			if result := functions.ResultOf(function(t.Context(), ready(t, pre))); result != functions.ResultRetry {
				t.Errorf("result is %s", result)
			}
			if e := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(pre).Error; e == nil || e.Reason != v1alpha1.ReasonServerUnreachable {
				t.Errorf("error is %+v", e)
			}
		})
	}
}

func TestAnOrderThatIsNotAcceptedIsStored(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: open, Fault: double.Fault404}}})
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatalf("got %v, want no error: retries do not help against a wrong base-url", err)
	}
	o := c.ChangeWorkload(ft.Release).Status.Order
	if o == nil || o.OpenedTime != nil || o.Error == nil || o.Error.Reason != v1alpha1.ReasonServerUnreachable {
		t.Errorf("order is %+v", o)
	}
	server.Script(t, double.Script{})
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatal(err)
	}
	if o := c.ChangeWorkload(ft.Release).Status.Order; o.OpenedTime == nil || o.Error != nil {
		t.Errorf("order is %+v", o)
	}
}

func TestAnOrderIsOpenAlthoughItsFirstAnswerWasLost(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: open, Fault: double.FaultReset, After: true, Nth: 1}}})
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, open, startOrder)
	if o := c.ChangeWorkload(ft.Release).Status.Order; o.OpenedTime == nil {
		t.Errorf("order is %+v", o)
	}
}

// newFinishingFunction returns a function and a batch that passed PRE and needs the
// finish.
func newFinishingFunction(t *testing.T, edit ...func(*v1alpha1.ChangePod)) (*ft.Cluster, *ft.ServerDouble, functions.Function) {
	t.Helper()
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	edit = append([]func(*v1alpha1.ChangePod){ft.Started(server.NewNode(t), time.Minute), ft.Judged(pre, "pass")}, edit...)
	if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, edit...)); err != nil {
		t.Fatal(err)
	}
	return c, server, functionOf(t, c, server)
}

func TestAfterALostAnswerToAFinishTheVerdictIsRetrievedFirst(t *testing.T) {
	lost := double.FaultRule{Action: finish, Fault: double.FaultReset, After: true, Nth: 1}
	never := lost
	never.After = false
	for name, tc := range map[string]struct {
		script double.Script
		calls  []string
		want   string // the POST verdict
	}{
		"finish arrived, check passed": {
			double.Script{Faults: []double.FaultRule{lost}}, []string{finish, retrieve}, "pass",
		},
		"finish arrived, check is running": {
			double.Script{Faults: []double.FaultRule{lost}, Default: double.Behaviour{Never: true}}, []string{finish, retrieve, finish}, "",
		},
		"finish did not arrive": {
			double.Script{Faults: []double.FaultRule{never}}, []string{finish, retrieve, finish}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFinishingFunction(t)
			before := len(server.Calls())
			server.Script(t, tc.script)
			if result := functions.ResultOf(function(t.Context(), ready(t, post))); result != functions.ResultRetry {
				t.Fatalf("result is %s", result)
			}
			if !tc.script.Default.Never {
				if err := server.Idle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := function(t.Context(), ready(t, post)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.calls, server.Calls()[before:]); diff != "" {
				t.Error(diff)
			}
			s := c.ChangePod(ft.BatchName(1)).Status
			if s.SubmissionOf(post).AnsweredTime == nil || s.SubmissionOf(post).Error != nil {
				t.Errorf("submission is %+v", s.SubmissionOf(post))
			}
			if v := s.VerdictOf(post); (v == nil) != (tc.want == "") || (v != nil && v.Verdict != tc.want) {
				t.Errorf("verdict is %+v", v)
			}
		})
	}
}

func TestAVerdictWithALostCallbackIsRetrieved(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict string
		stored  bool
	}{
		"pass":       {"pass", true},
		"fail":       {"fail", false}, // a running check is reported as fail, too
		"no verdict": {"inconc", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			server := ft.NewServerDouble(t, c, "")
			server.Script(t, double.Script{Default: double.Behaviour{Verdict: tc.verdict, Lost: true}})
			if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Started(server.NewNode(t), time.Minute))); err != nil {
				t.Fatal(err)
			}
			if err := functionOf(t, c, server)(t.Context(), ready(t, pre)); err != nil {
				t.Fatal(err)
			}
			v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(pre)
			if (v != nil) != tc.stored || (v != nil && v.UnconfirmedPass) {
				t.Errorf("verdict is %+v", v)
			}
		})
	}
}

func TestASkippedCheckIsNoVerdictAtOnce(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	server.Script(t, double.Script{Default: double.Behaviour{SkipCheck: true}})
	if err := function(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	if v := c.ChangePod(ft.BatchName(1)).Status.VerdictOf(pre); v.Outcome() != v1alpha1.OutcomeNoVerdict || v.Message == "" {
		t.Errorf("verdict is %+v", v)
	}
}

func TestAnOutdatedWakeUpHasNoEffect(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"release and batch deleted": {},
		"release deleted":           {ft.NewBatch(1, []string{"a"})},
		"batch deleted":             {ft.NewRelease()},
		"batch replaced":            {ft.NewRelease(), ft.NewBatch(1, []string{"a"}, func(p *v1alpha1.ChangePod) { p.UID = "later" })},
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, objects...)
			if err := function(t.Context(), ready(t, pre)); err != nil {
				t.Error(err)
			}
			calls(t, server)
			if c.Patches() != 0 {
				t.Error("the status was written")
			}
		})
	}
	t.Run("release replaced", func(t *testing.T) {
		_, server, function := newFunction(t, ft.NewRelease(unopened, func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }))
		if err := function(t.Context(), orderStartReady(t)); err != nil {
			t.Error(err)
		}
		calls(t, server)
	})
}

func TestWithoutAServerNothingIsSubmitted(t *testing.T) {
	c := ft.New(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	server := ft.NewServerDouble(t, ft.New(t), "")
	server.Clients = functions.NewClientSource(c.Kube)
	function := functionOf(t, c, server)
	for _, e := range []event.Event{orderStartReady(t), ready(t, pre)} {
		if err := function(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	if c.Patches() != 0 {
		t.Error("the status was written")
	}
}

func TestAnInvalidConfigurationIsStoredOnTheRelease(t *testing.T) {
	c := ft.New(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}))
	c.Configure("no URL", ft.Token)
	server := ft.NewServerDouble(t, ft.New(t), "")
	server.Clients = functions.NewClientSource(c.Kube)
	function := functionOf(t, c, server)
	for _, e := range []event.Event{orderStartReady(t), ready(t, pre)} {
		if err := function(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	o := c.ChangeWorkload(ft.Release).Status.Order
	if _, called := o.FirstResult(); called || o == nil || o.OpenedTime != nil || o.Error == nil || o.Error.Reason != v1alpha1.ReasonServerMisconfigured ||
		!strings.Contains(o.Error.Message, "base-url") {
		t.Errorf("order is %+v", o)
	}
}

func TestAnEventOfAnotherTypeIsAPermanentError(t *testing.T) {
	_, _, function := newFunction(t)
	e := ready(t, pre)
	e.SetType(events.TypePodFinished)
	if result := functions.ResultOf(function(t.Context(), e)); result != functions.ResultPermanent {
		t.Errorf("result is %s", result)
	}
}

// Stage POST of another judge begins while the server still checks PRE: a finish before its
// verdict would be rejected.
func TestTheWakeUpOfAnotherJudgeMakesNoCall(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", time.Minute)))
	err := function(t.Context(), wakeUp(t, events.ChangePodReady{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release,
		Version: ft.Version, Attempt: 1, Stage: post, Judge: v1alpha1.JudgeMetrics,
	}))
	if err != nil || c.Patches() != 0 || len(server.Calls()) != 0 {
		t.Errorf("%v, %d writes, calls %v", err, c.Patches(), server.Calls())
	}
}
