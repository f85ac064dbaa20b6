package functions_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/breakwater-dev/breakwater/apis/change/statuspatch"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestAConflictIsDecidedAgainOnWhatIsThereNow(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	c.BeforeNextPatch(func() {
		batch := c.ChangePod(ft.BatchName(1))
		batch.Status.Phase = v1alpha1.PodPreWait
		c.Write(batch)
	})
	var saw []v1alpha1.PodPhase
	got, err := functions.Swap(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
			saw = append(saw, p.Status.Phase)
			p.Status.ChangePodID = "n"
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]v1alpha1.PodPhase{v1alpha1.PodInit, v1alpha1.PodPreWait}, saw); diff != "" {
		t.Error(diff)
	}
	if got.Status.ChangePodID != "n" || got.Status.Phase != v1alpha1.PodPreWait {
		t.Errorf("stored is %+v", got.Status)
	}
}

func TestAConflictThatDoesNotEndIsWorthARepetition(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	c.FailPatches(apierrors.NewConflict(v1alpha1.Resource("changepods"), "a", errors.New("again")))
	tries := 0
	_, err := functions.Swap(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(p *v1alpha1.ChangePod) error {
			tries++
			p.Status.ChangePodID = "n"
			return nil
		})
	if functions.FateOf(err) != functions.FateRetry || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

func TestWhoChangesNothingWritesNothing(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	if _, err := functions.Swap(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodSubmit, func(*v1alpha1.ChangePod) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if c.Patches() != 0 {
		t.Error("something was written")
	}
}

func TestNobodyWritesTheFieldOfAnotherWriter(t *testing.T) {
	c := ft.New(t, ft.NewBatch(1, []string{"a"}))
	_, err := functions.Swap(t.Context(), c.Change.AppV1alpha1().ChangePods(ft.Namespace), ft.BatchName(1),
		statuspatch.ChangePodVerdict, func(p *v1alpha1.ChangePod) error {
			p.Status.ChangePodID = "n"
			return nil
		})
	if functions.FateOf(err) != functions.FatePermanent || c.Patches() != 0 {
		t.Errorf("got %v", err)
	}
}
