package functions_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestOnlyReleasesThatAcceptBatchesAreCached(t *testing.T) {
	orderVerdict := func(stage v1alpha1.Stage, verdict string) func(*v1alpha1.ChangeWorkload) {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = append(w.Status.OrderVerdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: verdict})
		}
	}
	phase := func(p v1alpha1.ReleasePhase) func(*v1alpha1.ChangeWorkload) {
		return func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = p }
	}
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.ChangeWorkload)
		want bool
	}{
		"running":                  {phase(v1alpha1.ReleaseRunning), true},
		"suspended":                {phase(v1alpha1.ReleaseSuspend), true},
		"succeeded":                {phase(v1alpha1.ReleaseSuccess), true},
		"failed":                   {phase(v1alpha1.ReleaseFailed), false},
		"baseline":                 {func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }, false},
		"later attempt":            {func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 2 }, true},
		"no order":                 {func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }, false},
		"order not open":           {func(w *v1alpha1.ChangeWorkload) { w.Status.Order.OpenedTime = nil }, false},
		"order passed PRE":         {orderVerdict(v1alpha1.StagePre, "pass"), true},
		"order passed POST":        {orderVerdict(v1alpha1.StagePost, "pass"), true},
		"order unjudged":           {orderVerdict(v1alpha1.StagePost, "none"), true},
		"order failed PRE":         {orderVerdict(v1alpha1.StagePre, "fail"), false},
		"order failed POST":        {orderVerdict(v1alpha1.StagePost, "fail"), false},
		"order failed by a person": {func(w *v1alpha1.ChangeWorkload) { w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "unpass"} }, false},
		"terminating": {func(w *v1alpha1.ChangeWorkload) {
			now := metav1.NewTime(ft.Now())
			w.DeletionTimestamp, w.Finalizers = &now, []string{"f"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(tc.edit))
			releases := functions.NewReleaseReader(c.Change, clocktesting.NewFakePassiveClock(ft.Now()))
			for i := range 3 {
				w, cached, err := releases.Recent(t.Context(), ft.Namespace, ft.Release)
				if err != nil || w.Name != ft.Release {
					t.Fatal(w, err)
				}
				if want := tc.want && i > 0; cached != want {
					t.Errorf("read %d: cached is %t", i, cached)
				}
			}
			if want := map[bool]int{true: 1, false: 3}[tc.want]; c.Gets("changeworkloads") != want {
				t.Errorf("%d reads, want %d", c.Gets("changeworkloads"), want)
			}
		})
	}
}

// withCachedRelease returns a reader that has cached a release, and a function that
// reads it again.
func withCachedRelease(t *testing.T) (*ft.Cluster, *clocktesting.FakePassiveClock, *functions.ReleaseReader, func() (*v1alpha1.ChangeWorkload, error)) {
	t.Helper()
	c := ft.New(t, ft.NewRelease())
	clock := clocktesting.NewFakePassiveClock(ft.Now())
	releases := functions.NewReleaseReader(c.Change, clock)
	read := func() (*v1alpha1.ChangeWorkload, error) {
		w, _, err := releases.Recent(t.Context(), ft.Namespace, ft.Release)
		return w, err
	}
	if _, err := read(); err != nil {
		t.Fatal(err)
	}
	return c, clock, releases, read
}

func TestAReleaseIsCachedForTheTTL(t *testing.T) {
	c, clock, _, read := withCachedRelease(t)
	c.Write(ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }))
	for _, tc := range []struct {
		after time.Duration
		uid   string
		reads int
	}{
		{functions.ReleaseCacheTTL, "release", 1},
		{functions.ReleaseCacheTTL + 1, "later", 2},
		{2 * functions.ReleaseCacheTTL, "later", 2},
	} {
		clock.SetTime(ft.Now().Add(tc.after))
		w, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if string(w.UID) != tc.uid || c.Gets("changeworkloads") != tc.reads {
			t.Errorf("after %s the uid is %s, with %d reads", tc.after, w.UID, c.Gets("changeworkloads"))
		}
	}
}

func TestTheTTLBeginsBeforeTheRead(t *testing.T) {
	c, clock, releases, read := withCachedRelease(t)
	c.Change.PrependReactor("get", "changeworkloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		clock.SetTime(clock.Now().Add(functions.ReleaseCacheTTL * 3 / 4))
		return false, nil, nil
	})
	if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); err != nil {
		t.Fatal(err)
	}
	before := c.Gets("changeworkloads")
	clock.SetTime(clock.Now().Add(functions.ReleaseCacheTTL / 2))
	if _, err := read(); err != nil || c.Gets("changeworkloads") != before+1 {
		t.Errorf("%d reads, %v", c.Gets("changeworkloads")-before, err)
	}
}

// The first of three concurrent calls reads the release; the others wait for its read.
func TestConcurrentCallsShareARead(t *testing.T) {
	closed := func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }
	for name, tc := range map[string]struct {
		release  func(*v1alpha1.ChangeWorkload)
		canceled bool // the context of the first call
		reads    int
		shared   int
	}{
		"a release that accepts batches":          {func(*v1alpha1.ChangeWorkload) {}, false, 1, 3},
		"a release that may accept batches now":   {closed, false, 4, 0},
		"the context of the first call has ended": {func(*v1alpha1.ChangeWorkload) {}, true, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(tc.release))
			releases := functions.NewReleaseReader(c.Change, clocktesting.NewFakePassiveClock(ft.Now()))
			synctest.Test(t, func(t *testing.T) {
				waiting, end := make(chan struct{}), make(chan struct{})
				var first sync.Once
				c.Change.PrependReactor("get", "changeworkloads", func(clienttesting.Action) (handled bool, _ runtime.Object, err error) {
					first.Do(func() {
						close(waiting)
						<-end
						if tc.canceled {
							handled, err = true, context.Canceled
						}
					})
					return handled, nil, err
				})
				var calls sync.WaitGroup
				var shared atomic.Int32
				for i := range 3 {
					calls.Go(func() {
						w, cached, err := releases.Recent(t.Context(), ft.Namespace, ft.Release)
						if err != nil || w.Name != ft.Release {
							t.Errorf("call %d: %v, %v", i, w, err)
						}
						if cached {
							shared.Add(1)
						}
					})
					if i == 0 {
						<-waiting
					}
				}
				synctest.Wait()
				close(end)
				calls.Wait()
				if int(shared.Load()) != tc.shared {
					t.Errorf("%d calls say that their release may be old, want %d", shared.Load(), tc.shared)
				}
			})
			if c.Gets("changeworkloads") != tc.reads {
				t.Errorf("%d reads, want %d", c.Gets("changeworkloads"), tc.reads)
			}
		})
	}
}

func TestALiveReadUpdatesTheCache(t *testing.T) {
	for name, tc := range map[string]struct {
		next *v1alpha1.ChangeWorkload
		gets int // of the cached read that follows
	}{
		"replaced": {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }), 0},
		"failed":   {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.ReleaseFailed }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, releases, read := withCachedRelease(t)
			c.Write(tc.next)
			if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); err != nil {
				t.Fatal(err)
			}
			before := c.Gets("changeworkloads")
			w, err := read()
			if err != nil {
				t.Fatal(err)
			}
			if w.UID != tc.next.UID || w.Status.Phase != tc.next.Status.Phase || c.Gets("changeworkloads")-before != tc.gets {
				t.Errorf("got %s, %s after %d reads", w.UID, w.Status.Phase, c.Gets("changeworkloads")-before)
			}
		})
	}
}

func TestADeletedReleaseIsRemovedFromTheCacheByALiveRead(t *testing.T) {
	c, _, releases, read := withCachedRelease(t)
	if err := c.Change.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("changeworkloads"), ft.Namespace, ft.Release); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err != nil {
		t.Errorf("the cached release is not returned: %v", err)
	}
	if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if _, err := read(); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
