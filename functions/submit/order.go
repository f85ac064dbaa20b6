package submit

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/statuspatch"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
)

// openOrder opens the order at the server, stores that it is open or why it is
// not, and returns the ChangeWorkload as it is then. An order that exists is
// open: an answer was lost, or two wake-ups came at once.
func (f *function) openOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload) (*v1alpha1.ChangeWorkload, error) {
	answer, callErr := server.OpenOrder(ctx, orderOf(w))
	workloads := f.client.AppV1alpha1().ChangeWorkloads(w.Namespace)
	stored, err := functions.Swap(ctx, workloads, w.Name, statuspatch.ChangeWorkloadSubmit, func(current *v1alpha1.ChangeWorkload) error {
		if current.UID != w.UID {
			return errOutdated
		}
		current.Status.Order = orderAfter(current.Status.Order, answer, callErr, f.clock.Now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stored, callErr
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
