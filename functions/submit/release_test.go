package submit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// newCachedFunction returns a function that has started two batches of a release and
// cached the release.
func newCachedFunction(t *testing.T) (*ft.Cluster, *ft.ServerDouble, functions.Function) {
	t.Helper()
	c, server, function := newFunction(t, ft.NewRelease(unopened), ft.NewBatch(1, []string{"a"}), ft.NewBatch(2, []string{"b"}), ft.NewBatch(3, []string{"c"}))
	for n := range 2 {
		if err := function(t.Context(), readyOf(t, n+1, pre)); err != nil {
			t.Fatal(err)
		}
	}
	return c, server, function
}

func TestBatchesShareAReadOfTheReleaseWithinTheTTL(t *testing.T) {
	c, server, function := newCachedFunction(t)
	for _, tc := range []struct {
		step  time.Duration
		reads int
	}{
		{0, 0}, {functions.ReleaseCacheTTL, 0}, {1, 1},
	} {
		server.Clock.Step(tc.step)
		before := c.Gets("changeworkloads")
		if err := function(t.Context(), readyOf(t, 3, pre)); err != nil {
			t.Fatal(err)
		}
		if n := c.Gets("changeworkloads") - before; n != tc.reads {
			t.Errorf("%d reads %s later", n, tc.step)
		}
	}
	// A second after the start, the server is asked for the verdict, and once more if the verdict is not
	// stored when the next wake-up comes.
	got := server.Calls()
	if len(got) == 6 && got[5] == retrieve {
		got = got[:5]
	}
	if diff := cmp.Diff([]string{open, start, start, start, retrieve}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAStartReadsTheBatchOnceAndWritesItTwice(t *testing.T) {
	c, _, function := newCachedFunction(t)
	readsBefore, writesBefore := c.Gets("changepods"), c.Patches()
	if err := function(t.Context(), readyOf(t, 3, pre)); err != nil {
		t.Fatal(err)
	}
	if reads, writes := c.Gets("changepods")-readsBefore, c.Patches()-writesBefore; reads != 1 || writes != 2 {
		t.Errorf("%d reads and %d writes", reads, writes)
	}
}

// The objects of both attempts have the same names and differ in their UIDs.
func TestABatchOfALaterAttemptIsStarted(t *testing.T) {
	c, server, function := newCachedFunction(t)
	later := ft.OrderID[:len(ft.OrderID)-1] + "2"
	c.Write(ft.NewRelease(unopened, func(w *v1alpha1.ChangeWorkload) { w.UID, w.Spec.Attempt, w.Spec.OrderID = "later", 2, later }))
	c.Write(ft.NewBatch(3, []string{"c"}, func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "later" }))
	for range 2 {
		if err := function(t.Context(), readyOf(t, 3, pre)); err != nil {
			t.Fatal(err)
		}
	}
	calls(t, server, open, start, start, open, start)
	if s := c.ChangePod(ft.BatchName(3)).Status; s.ChangePodID == "" {
		t.Errorf("status is %+v", s)
	}
	if orders := server.Orders(); len(orders) != 2 || orders[1].Order != later {
		t.Errorf("orders are %+v", orders)
	}
}

func TestABatchOfAnotherReleaseIsNotStartedForTheCachedOne(t *testing.T) {
	c, server, function := newCachedFunction(t)
	c.Write(ft.NewBatch(3, []string{"c"}, func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "another" }))
	before := c.Gets("changeworkloads")
	if err := function(t.Context(), readyOf(t, 3, pre)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, start, start)
	if n := c.Gets("changeworkloads") - before; n != 1 {
		t.Errorf("%d reads", n)
	}
}

// docs/change/order.md promises a second.
func TestAReleaseThatAcceptsNoBatchesIsDetectedAfterASecond(t *testing.T) {
	now := metav1.NewTime(ft.Now())
	for name, end := range map[string]func(*v1alpha1.ChangeWorkload){
		"order check failed": func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = []v1alpha1.StageVerdict{{Stage: pre, Verdict: "fail"}}
		},
		"order failed by a person": func(w *v1alpha1.ChangeWorkload) { w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "unpass"} },
		"terminating":              func(w *v1alpha1.ChangeWorkload) { w.DeletionTimestamp, w.Finalizers = &now, []string{"f"} },
		"failed":                   func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.ReleaseFailed },
	} {
		t.Run(name, func(t *testing.T) {
			c, server, function := newCachedFunction(t)
			w := c.ChangeWorkload(ft.Release)
			end(w)
			c.Write(w)
			server.Clock.Step(time.Second + 1)
			if err := function(t.Context(), readyOf(t, 3, pre)); err != nil {
				t.Fatal(err)
			}
			calls(t, server, open, start, start)
		})
	}
}

func TestAStepOfTheOrderIsDecidedOnTheCurrentRelease(t *testing.T) {
	c, server, function := newCachedFunction(t)
	setStep(c, v1alpha1.OrderStepClose, v1alpha1.OrderSuccess)
	if err := function(t.Context(), orderReady(t, v1alpha1.OrderStepClose)); err != nil {
		t.Fatal(err)
	}
	calls(t, server, open, start, start, closeOrder)
}
