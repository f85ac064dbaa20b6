package functions_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

func TestAConflictIsDecidedAgainOnTheCurrentObject(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	c.BeforeNextPatch(func() {
		batch := c.ChangePod(ft.BatchName(1))
		batch.Status.Phase = v1alpha1.BatchPreWait
		c.Write(batch)
	})
	var phases []v1alpha1.BatchPhase
	got, err := functions.PatchStatus(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
			phases = append(phases, p.Status.Phase)
			p.Status.ChangePodID = "n"
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]v1alpha1.BatchPhase{v1alpha1.BatchInit, v1alpha1.BatchPreWait}, phases); diff != "" {
		t.Error(diff)
	}
	if got.Status.ChangePodID != "n" || got.Status.Phase != v1alpha1.BatchPreWait {
		t.Errorf("stored is %+v", got.Status)
	}
}

func TestAReturnedObjectIsReadAgainOnlyAfterAConflict(t *testing.T) {
	judge := func(c *ft.Cluster) {
		batch := c.ChangePod(ft.BatchName(1))
		ft.Judged(v1alpha1.StagePre, "pass")(batch)
		c.Write(batch)
	}
	for name, tc := range map[string]struct {
		meanwhile func(c *ft.Cluster)
		reads     int
	}{
		"no other write":     {func(*ft.Cluster) {}, 0},
		"an earlier write":   {judge, 1},
		"a concurrent write": {func(c *ft.Cluster) { c.BeforeNextPatch(func() { judge(c) }) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewBatch(1, []string{"a"}))
			object := c.ChangePod(ft.BatchName(1))
			tc.meanwhile(c)
			var decided []*v1alpha1.ChangePod
			got, err := functions.PatchStatusFrom(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), object,
				statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
					decided = append(decided, p)
					p.Status.ChangePodID = "n"
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if n := c.Gets("changepods"); n != tc.reads || len(decided) != tc.reads+1 {
				t.Errorf("%d reads and %d decisions", n, len(decided))
			}
			if diff := cmp.Diff(c.ChangePod(ft.BatchName(1)), got); diff != "" {
				t.Errorf("stored (-) and returned (+):\n%s", diff)
			}
			if judged := got.Status.VerdictOf(v1alpha1.StagePre) != nil; got.Status.ChangePodID != "n" || judged != (tc.reads > 0) {
				t.Errorf("a fact is lost: %+v", got.Status)
			}
			if object.Status.ChangePodID != "" || slices.Contains(decided, object) {
				t.Error("the cached object was modified")
			}
		})
	}
}

func TestAReturnedObjectMayBeDeleted(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"deleted":  {},
		"replaced": {ft.NewBatch(1, []string{"a"}, func(p *v1alpha1.ChangePod) { p.UID, p.ResourceVersion = "later", "9" })},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, objects...)
			outdated := errors.New("outdated")
			object := ft.NewBatch(1, []string{"a"})
			_, err := functions.PatchStatusFrom(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), object,
				statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
					if p.UID != object.UID {
						return outdated
					}
					p.Status.ChangePodID = "n"
					return nil
				})
			if !apierrors.IsNotFound(err) && !errors.Is(err, outdated) || c.Patches() != 0 {
				t.Errorf("got %v after %d writes", err, c.Patches())
			}
		})
	}
}

func TestARepeatedConflictIsATransientError(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	c.FailPatches(apierrors.NewConflict(v1alpha1.Resource("changepods"), "a", errors.New("again")))
	tries := 0
	_, err := functions.PatchStatus(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
			tries++
			p.Status.ChangePodID = "n"
			return nil
		})
	if functions.ResultOf(err) != functions.ResultRetry || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

func TestAnUnchangedStatusIsNotWritten(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	if _, err := functions.PatchStatus(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(*v1alpha1.ChangePod) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if c.Patches() != 0 {
		t.Error("the status was written")
	}
}

func TestAFieldOfAnotherWriterIsNotWritten(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	_, err := functions.PatchStatus(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodVerdict, func(p *v1alpha1.ChangePod) error {
			p.Status.ChangePodID = "n"
			return nil
		})
	if functions.ResultOf(err) != functions.ResultPermanent || c.Patches() != 0 {
		t.Errorf("got %v", err)
	}
}
