package changeworkload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// closingTimeout is how long a deleted ChangeWorkload is kept to close its order. It also
// delays the deletion of its namespace, so an unreachable server must not take longer.
const closingTimeout = 2 * time.Minute

// openingTimeout is how long a deleted ChangeWorkload is kept while the call that opens its
// order may be in flight.
const openingTimeout = 15 * time.Second

// Deletion is the decision about a deleted ChangeWorkload.
type Deletion struct {
	// RemoveFinalizer: the finalizer is removed, because of Reason.
	RemoveFinalizer bool
	Reason          string
	// Step is the step of the order that function submit has to take first; nil while a
	// call may still open the order.
	Step *v1alpha1.OrderStep
	// Deadline is when the decision changes without an event.
	Deadline time.Time
}

// decideDeletion decides whether a deleted ChangeWorkload is kept until the server has
// closed its order. It does not read the workload of the input, which may be deleted,
// too.
func decideDeletion(in Input, optedIn bool) Deletion {
	c := in.ChangeWorkload
	within := func(timeout time.Duration) time.Time {
		return resend.ExtendDeadline(c.DeletionTimestamp.Add(timeout), in.DecidingSince, in.Now, openingTimeout)
	}
	switch o := c.Status.Order; {
	case o.ClosingDone():
		return Deletion{RemoveFinalizer: true, Reason: "the order is closed, or the server rejected the call, or all attempts failed"}
	case !in.ServerConfigured:
		return Deletion{RemoveFinalizer: true, Reason: "no AlterShield server is configured"}
	case !optedIn:
		return Deletion{RemoveFinalizer: true, Reason: "the namespace is not opted in"}
	case o.Opened():
		if deadline := within(closingTimeout); in.Now.Before(deadline) {
			state := v1alpha1.OrderCancel
			if c.Status.Phase == v1alpha1.ReleaseSuccess {
				state = v1alpha1.OrderSuccess
			}
			return Deletion{Step: dueStep(in, v1alpha1.OrderStepClose, state), Deadline: deadline}
		}
		return Deletion{RemoveFinalizer: true, Reason: "the server did not close the order within " + closingTimeout.String()}
	default:
		if deadline := within(openingTimeout); in.Now.Before(deadline) {
			return Deletion{Deadline: deadline}
		}
		return Deletion{RemoveFinalizer: true, Reason: "the order was not opened within " + openingTimeout.String()}
	}
}

// addFinalizer adds the finalizer before the order is opened: the order of a release that
// is deleted would stay open at the server. It reports whether it changed the object.
func (r *Reconciler) addFinalizer(ctx context.Context, in Input, d Decision) (bool, error) {
	c := in.ChangeWorkload
	if !d.Order.WakeSubmit || c.Status.Order.Opened() || slices.Contains(c.Finalizers, v1alpha1.OrderFinalizer) {
		return false, nil
	}
	return true, r.patchFinalizers(ctx, c, append(slices.Clone(c.Finalizers), v1alpha1.OrderFinalizer))
}

// removeFinalizer removes the finalizer when no call for the order is left.
func (r *Reconciler) removeFinalizer(ctx context.Context, in Input, d Decision) error {
	c := in.ChangeWorkload
	open := in.ServerConfigured && c.Status.Order.Opened()
	if !slices.Contains(c.Finalizers, v1alpha1.OrderFinalizer) || d.Order.WakeSubmit || !c.Status.Order.ClosingDone() && (open || !d.ended()) {
		return nil
	}
	err := r.dropFinalizer(ctx, c)
	if apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return nil // the cache does not have the last write, whose event reconciles again
	}
	return err
}

func (r *Reconciler) dropFinalizer(ctx context.Context, c *v1alpha1.ChangeWorkload) error {
	return r.patchFinalizers(ctx, c, slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == v1alpha1.OrderFinalizer }))
}

// patchFinalizers writes the finalizers, unless the object has changed.
func (r *Reconciler) patchFinalizers(ctx context.Context, c *v1alpha1.ChangeWorkload, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": c.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("encode the finalizers of %s: %w", c.Name, err)
	}
	_, err = r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("write the finalizers of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}

// deletionReconciler also reconciles deleted ChangeWorkloads. The generated reconciler passes
// these only to a reconciler that sets a finalizer on every object.
type deletionReconciler struct {
	generated
	reconciler *Reconciler
}

// generated is what the generated reconciler implements.
type generated interface {
	controller.Reconciler
	reconciler.LeaderAware
	IsLeaderFor(key types.NamespacedName) bool
}

// Reconcile implements controller.Reconciler.
func (f deletionReconciler) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	c, err := f.reconciler.lister.ChangeWorkloads(namespace).Get(name)
	if err != nil || c.DeletionTimestamp == nil || !f.IsLeaderFor(types.NamespacedName{Namespace: namespace, Name: name}) {
		return f.generated.Reconcile(ctx, key)
	}
	return f.reconciler.finalize(ctx, c.DeepCopy())
}

// finalize asks function submit to close the order of a deleted ChangeWorkload, and
// removes the finalizer when the order is closed or after a timeout.
func (r *Reconciler) finalize(ctx context.Context, c *v1alpha1.ChangeWorkload) reconciler.Event {
	if !slices.Contains(c.Finalizers, v1alpha1.OrderFinalizer) {
		r.forget(c)
		return nil
	}
	ns, err := r.namespaces.Get(c.Namespace)
	if err != nil && !apierrs.IsNotFound(err) {
		return fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	now := r.clock.Now()
	in := Input{ChangeWorkload: c, Now: now, DecidingSince: r.decidingSince.Get(now), ServerConfigured: r.serverConfigured()}
	d := decideDeletion(in, err == nil && v1alpha1.OptedIn(ns))
	if d.RemoveFinalizer {
		r.forget(c)
		err := r.dropFinalizer(ctx, c)
		if err == nil {
			logging.FromContext(ctx).Infow("removed the finalizer of the deleted ChangeWorkload", "reason", d.Reason)
		}
		return retried(err)
	}
	next := deadline.WaitUntil(d.Deadline, now)
	if d.Step != nil {
		wake, err := r.closeDeleted(ctx, in, d.Step)
		if err != nil {
			return retried(err)
		}
		next = deadline.ShorterWait(next, wake)
	}
	return controller.NewRequeueAfter(next)
}

// closeDeleted stores the step, which function submit reads, and wakes it.
func (r *Reconciler) closeDeleted(ctx context.Context, in Input, step *v1alpha1.OrderStep) (time.Duration, error) {
	next := in.ChangeWorkload.DeepCopy()
	next.Status.OrderStep = step
	stored, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(next.Namespace), fieldManager,
		in.ChangeWorkload, next, statuspatch.ChangeWorkloadDerived)
	if err != nil {
		return 0, err
	}
	in.ChangeWorkload = stored
	return r.wakeSubmit(ctx, in, Decision{Order: Order{Step: step, WakeSubmit: true, WakeFor: resend.ForCall}})
}

// retried returns the result of a write: after a conflict the object is reconciled again.
func retried(err error) reconciler.Event {
	switch {
	case err == nil, apierrs.IsNotFound(err):
		return nil
	case apierrs.IsConflict(err):
		return controller.NewRequeueAfter(staleCacheRetry)
	default:
		return err
	}
}
