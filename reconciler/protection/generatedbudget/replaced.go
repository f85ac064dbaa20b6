package generatedbudget

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
	"github.com/breakwater-dev/breakwater/internal/kindwatch"
)

// deleteReplaced deletes the budgets of the Deployment of a Revision, which earlier versions generated,
// as soon as the budgets of its Knative Service replace them. Until then they stay as they are.
func (r *Reconciler) deleteReplaced(ctx context.Context, w *workload, ns *corev1.Namespace) error {
	service := r.workloads.custom.get(knativeService, w.GetNamespace(), w.knativeService)
	var errs []error
	waits := false
	for _, of := range []struct {
		annotation string
		budget     func(*workload) generated
	}{{generatedbudget.PUBAnnotation, r.pub}, {generatedbudget.PDBAnnotation, r.pdb}} {
		present := of.budget(w)
		switch {
		case present.err != nil:
			errs = append(errs, present.err)
		case !present.ownedBy(w):
		case r.replaces(service, ns, of.annotation, of.budget):
			errs = append(errs, present.delete(ctx))
		default:
			waits = true
		}
	}
	if err := errors.Join(errs...); err != nil || !waits {
		return err
	}
	return controller.NewRequeueAfter(kindwatch.DiscoveryInterval)
}

// replaces reports whether the Knative Service has the budget that an annotation asks for, or wants
// none. Otherwise, and if that is not known, the present budget is kept: a pod is never without a
// budget, and two budgets only deny more.
func (r *Reconciler) replaces(service *workload, ns *corev1.Namespace, annotation string, budget func(*workload) generated) bool {
	if service == nil {
		return false
	}
	if budget(service).ownedBy(service) {
		return true
	}
	limits, err := generatedbudget.Decide(annotation, service.annotations(ns), service.strategyMaxUnavailable, r.defaults())
	return limits == nil && err == nil
}
