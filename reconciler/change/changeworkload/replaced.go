package changeworkload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// replaced reports whether the workload is at a newer release. Another attempt that
// is not newer means that the cache is stale or that the annotations of the
// workload were removed: neither ends this release.
func replaced(in Input) bool {
	return in.Workload.Attempt > in.ChangeWorkload.Spec.Attempt
}

// replacedSuccess reports whether a release succeeded and a newer one replaced it.
// Only a fail changes its status; the deletion of its pods does not.
func replacedSuccess(in Input) bool {
	return in.ChangeWorkload.Status.Phase == v1alpha1.ReleaseSuccess && replaced(in)
}

// decideNotCurrent decides a release that is not current: a newer one replaced it, or the cache is stale. It never
// changes the workload.
func decideNotCurrent(in Input, d Decision) Decision {
	c := in.ChangeWorkload
	d.Phase, d.Reason, d.Detail = c.Status.Phase, reasonOfSucceeded(c), messageOfSucceeded(c)
	if isNew(c) {
		d.Reason, d.Detail = v1alpha1.ReasonReleasePending, "the cache does not show the workload at this version and attempt yet"
	}
	if !replaced(in) {
		return d
	}
	d.Order = decideClose(in, closeState(in))
	switch {
	case ended(c):
		d.failLate(c)
	case c.Status.Phase == v1alpha1.ReleaseSuspend:
		d.Order.Step = replacedStep(in, d.Order.Step)
	default:
		d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseFailed, v1alpha1.ReasonSuperseded,
			"a newer template was applied before this release ended"
	}
	return d
}

// failLate fails a release that was replaced after or before it ended, and failed its check then: no
// rollback returns to its version.
func (d *Decision) failLate(c *v1alpha1.ChangeWorkload) {
	outcome, detail := c.Status.OrderOutcome()
	switch {
	case len(d.Pods.Failed) > 0:
		d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseFailed, v1alpha1.ReasonCheckFailed, d.Pods.failure()
	case outcome == v1alpha1.OutcomeFail:
		d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseFailed, v1alpha1.ReasonOrderCheckFailed, "the order check failed: "+detail
	}
}

// closeState is the final state of the order of a release that a newer one replaced.
func closeState(in Input) v1alpha1.OrderState {
	switch {
	case in.ChangeWorkload.Status.Phase == v1alpha1.ReleaseSuccess:
		return v1alpha1.OrderSuccess
	case in.Workload.IsRollback:
		return v1alpha1.OrderRollback
	default:
		return v1alpha1.OrderCancel
	}
}

// replacedStep returns the step of a suspended release that a newer one replaced. It shows this to function submit
// and to the batches, which end (FailedAndReplaced), also if there is no order to close, or the order was closed
// before the release failed.
func replacedStep(in Input, s *v1alpha1.OrderStep) *v1alpha1.OrderStep {
	if s != nil && s.Name == v1alpha1.OrderStepClose && s.State != v1alpha1.OrderSuccess {
		return s
	}
	return &v1alpha1.OrderStep{Name: v1alpha1.OrderStepClose, Since: metav1.NewTime(in.Now), State: closeState(in)}
}
