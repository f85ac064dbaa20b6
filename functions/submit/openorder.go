package submit

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// openOrder opens the order at the server, stores the result, and returns the stored
// ChangeWorkload. An existing order counts as opened: an answer was lost, or two
// wake-ups were concurrent.
func (f *function) openOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload) (*v1alpha1.ChangeWorkload, error) {
	// Wake-ups of batches open the order, too.
	answer, callErr := server.OpenOrder(releasetrace.OfRelease(ctx, w), orderOf(w))
	if altershield.IsThrottled(callErr) || altershield.IsBreakerOpen(callErr) {
		return nil, callErr // the server was not called
	}
	stored, err := f.storeOrder(ctx, w, answer, callErr)
	if err != nil {
		return nil, err
	}
	return stored, callErr
}

// storeConfigError stores on the release that an invalid configuration prevents the
// order from being opened, so that users find the cause there.
func (f *function) storeConfigError(ctx context.Context, wake wakeUp, configErr error) error {
	w, err := f.releases.Live(ctx, wake.namespace, wake.release)
	if err != nil {
		return err
	}
	if wake.releaseUID != "" && wake.releaseUID != w.UID {
		return errOutdated
	}
	logging.FromContext(ctx).Errorw("Invalid configuration of the server", "error", configErr)
	if w.Spec.Attempt == 0 || w.Status.Phase == v1alpha1.ReleaseFailed || w.DeletionTimestamp != nil || w.Status.Order.Opened() {
		return nil
	}
	_, err = f.storeOrder(ctx, w, altershield.OrderAnswer{}, configErr)
	return err
}

func (f *function) storeOrder(ctx context.Context, w *v1alpha1.ChangeWorkload, answer altershield.OrderAnswer, callErr error) (*v1alpha1.ChangeWorkload, error) {
	releases := f.client.AppV1alpha1().ChangeWorkloads(w.Namespace)
	return functions.PatchStatus(ctx, releases, w.Name, statuspatch.ChangeWorkloadSubmit, func(current *v1alpha1.ChangeWorkload) error {
		if current.UID != w.UID {
			return errOutdated
		}
		current.Status.Order = updatedOrder(current.Status.Order, answer, callErr, f.clock.Now())
		return nil
	})
}

// updatedOrder returns the order after a call, or after a configuration that prevented it. It keeps the fields of an open order:
// a later answer (106) has less information, and an error has none.
func updatedOrder(before *v1alpha1.Order, answer altershield.OrderAnswer, callErr error, now time.Time) *v1alpha1.Order {
	after := &v1alpha1.Order{}
	if before != nil {
		after = before.DeepCopy()
	}
	if after.RequestedTime == nil && !errors.As(callErr, new(*functions.ConfigError)) { // a call was made
		after.RequestedTime = &metav1.Time{Time: now}
	}
	switch {
	case callErr != nil && after.OpenedTime == nil:
		after.Error = serverError(callErr, now)
	case callErr == nil:
		after.Error = nil
		if after.OpenedTime == nil {
			after.OpenedTime = new(metav1.NewTime(now))
		}
		if after.ID == "" {
			after.ID, after.URL = answer.OrderID, answer.URL
		}
	}
	return after
}
