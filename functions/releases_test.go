package functions_test

import (
	"testing"
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

func TestOnlyAReleaseThatIsUnderWayIsRemembered(t *testing.T) {
	said := func(stage v1alpha1.Stage, word string) func(*v1alpha1.ChangeWorkload) {
		return func(w *v1alpha1.ChangeWorkload) {
			w.Status.OrderVerdicts = append(w.Status.OrderVerdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: word})
		}
	}
	phase := func(p v1alpha1.WorkloadPhase) func(*v1alpha1.ChangeWorkload) {
		return func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = p }
	}
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.ChangeWorkload)
		want bool
	}{
		"it runs":                   {phase(v1alpha1.WorkloadRunning), true},
		"it is suspended":           {phase(v1alpha1.WorkloadSuspend), true},
		"it succeeded":              {phase(v1alpha1.WorkloadSuccess), true},
		"it failed":                 {phase(v1alpha1.WorkloadFailed), false},
		"it is a baseline":          {func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }, false},
		"it is a later attempt":     {func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 2 }, true},
		"it has no order":           {func(w *v1alpha1.ChangeWorkload) { w.Status.Order = nil }, false},
		"its order is not open":     {func(w *v1alpha1.ChangeWorkload) { w.Status.Order.OpenedTime = nil }, false},
		"its order passed PRE":      {said(v1alpha1.StagePre, "pass"), true},
		"its order passed POST":     {said(v1alpha1.StagePost, "pass"), true},
		"nobody judged its order":   {said(v1alpha1.StagePost, "none"), true},
		"its order failed PRE":      {said(v1alpha1.StagePre, "fail"), false},
		"its order failed POST":     {said(v1alpha1.StagePost, "fail"), false},
		"a person failed its order": {func(w *v1alpha1.ChangeWorkload) { w.Status.OrderResult = &v1alpha1.OrderResult{Verdict: "unpass"} }, false},
		"it is being deleted": {func(w *v1alpha1.ChangeWorkload) {
			now := metav1.NewTime(ft.Now())
			w.DeletionTimestamp, w.Finalizers = &now, []string{"f"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(tc.edit))
			releases := functions.NewReleases(c.Change, clocktesting.NewFakePassiveClock(ft.Now()))
			for i := range 3 {
				w, recent, err := releases.Recent(t.Context(), ft.Namespace, ft.Release)
				if err != nil || w.Name != ft.Release {
					t.Fatal(w, err)
				}
				if want := tc.want && i > 0; recent != want {
					t.Errorf("read %d: recent is %t", i, recent)
				}
			}
			if want := map[bool]int{true: 1, false: 3}[tc.want]; c.Gets("changeworkloads") != want {
				t.Errorf("%d reads, want %d", c.Gets("changeworkloads"), want)
			}
		})
	}
}

// held has remembered a release and looks at it again.
func held(t *testing.T) (*ft.Cluster, *clocktesting.FakePassiveClock, *functions.Releases, func() (*v1alpha1.ChangeWorkload, error)) {
	t.Helper()
	c := ft.New(t, ft.NewRelease())
	clock := clocktesting.NewFakePassiveClock(ft.Now())
	releases := functions.NewReleases(c.Change, clock)
	look := func() (*v1alpha1.ChangeWorkload, error) {
		w, _, err := releases.Recent(t.Context(), ft.Namespace, ft.Release)
		return w, err
	}
	if _, err := look(); err != nil {
		t.Fatal(err)
	}
	return c, clock, releases, look
}

func TestAReleaseIsRememberedForASecond(t *testing.T) {
	c, clock, _, look := held(t)
	c.Write(ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }))
	for _, tc := range []struct {
		after time.Duration
		uid   string
		reads int
	}{
		{functions.ReleaseAge, "release", 1},
		{functions.ReleaseAge + 1, "later", 2},
		{2 * functions.ReleaseAge, "later", 2},
	} {
		clock.SetTime(ft.Now().Add(tc.after))
		w, err := look()
		if err != nil {
			t.Fatal(err)
		}
		if string(w.UID) != tc.uid || c.Gets("changeworkloads") != tc.reads {
			t.Errorf("after %s it is %s with %d reads", tc.after, w.UID, c.Gets("changeworkloads"))
		}
	}
}

func TestWhatASlowReadBringsIsForgottenSooner(t *testing.T) {
	c, clock, releases, look := held(t)
	c.Change.PrependReactor("get", "changeworkloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		clock.SetTime(clock.Now().Add(functions.ReleaseAge * 3 / 4))
		return false, nil, nil
	})
	if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); err != nil {
		t.Fatal(err)
	}
	before := c.Gets("changeworkloads")
	clock.SetTime(clock.Now().Add(functions.ReleaseAge / 2))
	if _, err := look(); err != nil || c.Gets("changeworkloads") != before+1 {
		t.Errorf("%d reads, %v", c.Gets("changeworkloads")-before, err)
	}
}

func TestALiveReadIsWhatOthersSeeAfterIt(t *testing.T) {
	for name, tc := range map[string]struct {
		next *v1alpha1.ChangeWorkload
		gets int // by those who look after it
	}{
		"another release of the name":   {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }), 0},
		"one that is not under way now": {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.Status.Phase = v1alpha1.WorkloadFailed }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, releases, look := held(t)
			c.Write(tc.next)
			if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); err != nil {
				t.Fatal(err)
			}
			before := c.Gets("changeworkloads")
			w, err := look()
			if err != nil {
				t.Fatal(err)
			}
			if w.UID != tc.next.UID || w.Status.Phase != tc.next.Status.Phase || c.Gets("changeworkloads")-before != tc.gets {
				t.Errorf("it is %s, %s after %d reads", w.UID, w.Status.Phase, c.Gets("changeworkloads")-before)
			}
		})
	}
}

func TestAReleaseThatIsFoundToBeGoneIsForgotten(t *testing.T) {
	c, _, releases, look := held(t)
	if err := c.Change.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("changeworkloads"), ft.Namespace, ft.Release); err != nil {
		t.Fatal(err)
	}
	if _, err := look(); err != nil {
		t.Errorf("it was read a moment ago: %v", err)
	}
	if _, err := releases.Live(t.Context(), ft.Namespace, ft.Release); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if _, err := look(); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
