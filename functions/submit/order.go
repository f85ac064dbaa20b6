package submit

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// openOrder opens the order at the server, stores that it is open or why it is
// not, and returns the ChangeWorkload as it is then. An order that exists is
// open: an answer was lost, or two wake-ups came at once.
func (f *function) openOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload) (*v1alpha1.ChangeWorkload, error) {
	answer, callErr := server.OpenOrder(ctx, orderOf(w))
	stored, err := f.storeOrder(ctx, w, answer, callErr)
	if err != nil {
		return nil, err
	}
	return stored, callErr
}

// misconfigured stores that the order cannot be opened because of a mistake in
// the configuration, so that a person finds it where the release is.
func (f *function) misconfigured(ctx context.Context, wake wakeUp, why error) error {
	w, err := f.releases.Live(ctx, wake.namespace, wake.workload)
	if err != nil {
		return err
	}
	if wake.workloadUID != "" && wake.workloadUID != w.UID {
		return errOutdated
	}
	logging.FromContext(ctx).Errorw("the server cannot be called", "error", why)
	if w.Spec.Attempt == 0 || w.Status.Phase == v1alpha1.WorkloadFailed || w.DeletionTimestamp != nil || w.Status.Order.Opened() {
		return nil
	}
	_, err = f.storeOrder(ctx, w, altershield.OrderAnswer{}, why)
	return err
}

func (f *function) storeOrder(ctx context.Context, w *v1alpha1.ChangeWorkload, answer altershield.OrderAnswer, callErr error) (*v1alpha1.ChangeWorkload, error) {
	workloads := f.client.AppV1alpha1().ChangeWorkloads(w.Namespace)
	return functions.PatchStatus(ctx, workloads, w.Name, statuspatch.ChangeWorkloadSubmit, func(current *v1alpha1.ChangeWorkload) error {
		if current.UID != w.UID {
			return errOutdated
		}
		current.Status.Order = orderAfter(current.Status.Order, answer, callErr, f.clock.Now())
		return nil
	})
}

// orderAfter returns the fact after a call. What an earlier call learned of an
// open order stays: a later answer (106) knows less, and an error nothing.
func orderAfter(before *v1alpha1.Order, answer altershield.OrderAnswer, callErr error, now time.Time) *v1alpha1.Order {
	after := &v1alpha1.Order{}
	if before != nil {
		after = before.DeepCopy()
	}
	switch {
	case callErr != nil && after.OpenedTime == nil:
		after.Error = serverError(callErr, now)
	case callErr == nil:
		after.Error = nil
		if after.OpenedTime == nil {
			opened := metav1.NewTime(now)
			after.OpenedTime = &opened
		}
		if after.ID == "" {
			after.ID, after.URL = answer.OrderID, answer.URL
		}
	}
	return after
}
