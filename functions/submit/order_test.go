package submit_test

import (
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

func orderReady(t *testing.T, step v1alpha1.OrderStepName) event.Event {
	return wakeUp(t, events.OrderReady{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, Attempt: 1, Step: step,
	})
}

// setStep sets the step of the order, as the reconciler does.
func setStep(c *ft.Cluster, name v1alpha1.OrderStepName, state v1alpha1.OrderState) {
	w := c.ChangeWorkload(ft.Release)
	w.Status.OrderStep = &v1alpha1.OrderStep{Name: name, State: state}
	c.Write(w)
}

func TestEachCallOfAnOrderIsMadeOnce(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	wakeUp3Times := func(step v1alpha1.OrderStepName) {
		t.Helper()
		for range 3 {
			if err := function(t.Context(), orderReady(t, step)); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wakeUp3Times(v1alpha1.OrderStepStart)
	calls(t, server, open, startOrder)
	setStep(c, v1alpha1.OrderStepFinish, "")
	wakeUp3Times(v1alpha1.OrderStepFinish)
	calls(t, server, open, startOrder, finish)
	setStep(c, v1alpha1.OrderStepClose, v1alpha1.OrderSuccess)
	wakeUp3Times(v1alpha1.OrderStepClose)
	calls(t, server, open, startOrder, finish, closeOrder)

	o := c.ChangeWorkload(ft.Release).Status.Order
	if o.NodeID != server.Nodes()[0].ID || !o.ClosingDone() || o.Closing.State != v1alpha1.OrderSuccess || o.Closing.Attempts != 1 {
		t.Errorf("order is %+v", o)
	}
	for _, stage := range []v1alpha1.Stage{pre, post} {
		if s := o.SubmissionOf(stage); s == nil || s.AnsweredTime == nil || s.Attempts != 1 {
			t.Errorf("%s is %+v", stage, s)
		}
	}
	if got := server.Orders()[0].State; got != "SUCCESS" {
		t.Errorf("state of the order at the server is %s", got)
	}
}

func TestAnEventForAnotherStepHasNoEffect(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	if err := function(t.Context(), orderReady(t, v1alpha1.OrderStepStart)); err != nil {
		t.Fatal(err)
	}
	before := c.Patches()
	if err := function(t.Context(), orderReady(t, v1alpha1.OrderStepFinish)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, startOrder)
	if c.Patches() != before {
		t.Error("the status was written")
	}
}

func TestASkippedOrderCheckIsStored(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	server.Script(t, double.Script{Default: double.Behaviour{SkipCheck: true}})
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatal(err)
	}
	if o := c.ChangeWorkload(ft.Release).Status.Order; !o.Skipped || o.NodeID == "" {
		t.Errorf("order is %+v", o)
	}
}

func TestAnOrderVerdictWithALostCallbackIsRetrieved(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict string
		stored  bool
	}{
		"pass": {"pass", true},
		"fail": {"fail", false}, // a running check is reported as fail, too
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newFunction(t, ft.NewRelease(unopened))
			server.Script(t, double.Script{Default: double.Behaviour{Verdict: tc.verdict, Lost: true}})
			if err := function(t.Context(), orderStartReady(t)); err != nil {
				t.Fatal(err)
			}
			if err := server.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			server.Clock.Step(time.Second)
			if err := function(t.Context(), orderStartReady(t)); err != nil {
				t.Fatal(err)
			}
			calls(t, server, open, startOrder, retrieve)
			v := c.ChangeWorkload(ft.Release).Status.OrderVerdictOf(pre)
			if (v != nil) != tc.stored || (v != nil && v.UnconfirmedPass) {
				t.Errorf("verdict is %+v", v)
			}
		})
	}
}

func TestClosingAnOrderIsAttemptedFiveTimes(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(unopened))
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatal(err)
	}
	setStep(c, v1alpha1.OrderStepClose, v1alpha1.OrderCancel)
	server.Script(t, double.Script{Faults: []double.FaultRule{{Action: closeOrder, Fault: double.Fault404}}})
	for range 8 {
		if err := function(t.Context(), orderReady(t, v1alpha1.OrderStepClose)); err != nil {
			t.Fatal(err)
		}
		server.Clock.Step(time.Minute)
	}
	o := c.ChangeWorkload(ft.Release).Status.Order
	if !o.ClosingDone() || o.Closing.Attempts != v1alpha1.MaxClosingAttempts || o.Closing.AnsweredTime != nil {
		t.Errorf("closing is %+v", o.Closing)
	}
}

func TestTheCachedAnswerToAFinishIsStoredWithTheNextWakeUp(t *testing.T) {
	c, server, function := newFinishingFunction(t)
	server.Script(t, double.Script{Default: double.Behaviour{Never: true}})
	before := c.Patches()
	wake := func() {
		t.Helper()
		if err := function(t.Context(), ready(t, post)); err != nil {
			t.Fatal(err)
		}
	}
	wake()
	if n := c.Patches() - before; n != 1 {
		t.Errorf("%d writes, want only the intent", n)
	}
	wake()
	wake()
	s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(post)
	if n := c.Patches() - before; n != 2 || s.AnsweredTime == nil || s.Attempts != 1 {
		t.Errorf("%d writes, submission is %+v", n, s)
	}
}

func TestAFinishIsRepeatedIfItsCachedAnswerIsLost(t *testing.T) {
	c, server, function := newFinishingFunction(t)
	server.Script(t, double.Script{Default: double.Behaviour{Never: true}})
	if err := function(t.Context(), ready(t, post)); err != nil {
		t.Fatal(err)
	}
	another := functionOf(t, c, server)
	if err := another(t.Context(), ready(t, post)); err != nil {
		t.Fatal(err)
	}
	if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(post); s.AnsweredTime != nil || s.Attempts != 1 {
		t.Fatalf("a call may be in flight, but submission is %+v", s)
	}
	server.Clock.Step(time.Minute)
	if err := another(t.Context(), ready(t, post)); err != nil {
		t.Fatal(err)
	}
	// The server rejects the second finish because the check of the first one runs.
	if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(post); s.AnsweredTime == nil || s.Attempts != 2 || s.Error != nil {
		t.Errorf("submission is %+v", s)
	}
	if got := server.Nodes()[0].State; got != double.PostRuns {
		t.Errorf("state of the node is %s", got)
	}
}

func TestNothingIsWrittenWhileTheCircuitBreakerIsOpen(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}))
	server.Script(t, double.Script{Faults: []double.FaultRule{{Fault: double.FaultReset}}})
	client, _, err := server.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for !client.BreakerOpen() {
		_ = function(t.Context(), ready(t, pre)) // the server is unreachable
		server.Clock.Step(time.Minute)
	}
	before, attempts := c.Patches(), len(server.Calls())
	for _, e := range []event.Event{ready(t, pre), orderReady(t, v1alpha1.OrderStepStart)} {
		if result := functions.ResultOf(function(t.Context(), e)); result != functions.ResultDone {
			t.Errorf("result is %s, want done: the reconciler repeats the wake-up", result)
		}
	}
	if c.Patches() != before || len(server.Calls()) != attempts {
		t.Error("the status was written or the server was called")
	}
	if s := c.ChangePod(ft.BatchName(1)).Status.SubmissionOf(pre); s.Error == nil || s.Error.Reason != v1alpha1.ReasonServerUnreachable {
		t.Errorf("the error is not stored: %+v", s)
	}
	// A restarted process has a closed breaker, and the server is reachable again.
	server.Script(t, double.Script{})
	restarted := &ft.ServerDouble{Double: server.Double, Clients: ft.NewClients(c, server.Clock), Clock: server.Clock}
	w := c.ChangeWorkload(ft.Release)
	w.Status.Order = nil
	c.Write(w)
	if err := functionOf(t, c, restarted)(t.Context(), ready(t, pre)); err != nil {
		t.Fatal(err)
	}
	if s := c.ChangePod(ft.BatchName(1)).Status; s.ChangePodID == "" || s.SubmissionOf(pre).Error != nil {
		t.Errorf("status is %+v", s)
	}
}

// The reconciler ends a batch without an intent after submit-timeout: a stage whose check was
// never begun must not seem to be one that the server does not answer.
func TestAnOpenCircuitBreakerLeavesNoIntentOfANewBatch(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}), ft.NewBatch(2, []string{"b"}))
	server.Script(t, double.Script{Faults: []double.FaultRule{{Fault: double.FaultReset}}})
	client, _, err := server.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for !client.BreakerOpen() {
		_ = function(t.Context(), ready(t, pre)) // batch 1; the server is unreachable
		server.Clock.Step(time.Minute)
	}
	before := c.Patches()
	if result := functions.ResultOf(function(t.Context(), readyOf(t, 2, pre))); result != functions.ResultDone {
		t.Errorf("result is %s, want done: the reconciler repeats the wake-up", result)
	}
	if s := c.ChangePod(ft.BatchName(2)).Status; c.Patches() != before || len(s.Submissions) != 0 {
		t.Errorf("%d writes, submissions %+v, want none", c.Patches()-before, s.Submissions)
	}
}

func TestTheAnswerToAnEarlierStartOfAnOrderIsIgnored(t *testing.T) {
	c, server, function := newFunction(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		w.Status.OrderStep = &v1alpha1.OrderStep{Name: v1alpha1.OrderStepStart}
	}))
	client, _, err := server.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: ft.OrderID}); err != nil {
		t.Fatal(err)
	}
	c.BeforePatch(2, func() {
		w := c.ChangeWorkload(ft.Release)
		w.Status.Order.Submissions[0].Attempts++
		w.Status.Order.Submissions[0].IntentTime = metav1.NewMicroTime(ft.Now())
		c.Write(w)
	})
	if err := function(t.Context(), orderStartReady(t)); err != nil {
		t.Fatal(err)
	}
	o := c.ChangeWorkload(ft.Release).Status.Order
	if diff := cmp.Diff("", o.NodeID); diff != "" || o.SubmissionOf(pre).AnsweredTime != nil {
		t.Errorf("order is %+v", o)
	}
}
