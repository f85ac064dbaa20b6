// Package opsconfiginfo writes on each OpsConfigInfo whether it takes effect
// and how, and creates the two default objects. The settings themselves do not
// depend on it: the controller and the webhook derive them from the objects.
package opsconfiginfo

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcileropsconfiginfo "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/opsconfiginfo"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

const (
	// fieldManager owns what this binary writes.
	fieldManager = "controller"
	// createRetry is short: during an installation the CRD or the webhook may
	// become available only seconds after this process starts.
	createRetry = 2 * time.Second
)

// Reconciler writes the condition Ready of OpsConfigInfo objects.
type Reconciler struct {
	client    versioned.Interface
	lister    listers.OpsConfigInfoLister
	installed *installed
	clock     clock.PassiveClock
}

var (
	_ reconcileropsconfiginfo.Interface = (*Reconciler)(nil)
	_ reconciler.OnDeletionInterface    = (*Reconciler)(nil)
)

// ReconcileKind writes the condition Ready of one object.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.OpsConfigInfo) reconciler.Event {
	all, err := r.lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list OpsConfigInfo: %w", err)
	}
	if err := r.ensureDefault(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, true); err != nil {
		return err
	}
	next := c.DeepCopy()
	next.Status.ObservedGeneration = c.Generation
	d := Decide(c, all)
	if d.Applied {
		next.MarkApplied(d.Message)
	} else {
		next.MarkNotApplied(d.Reason, d.Message)
	}
	if equality.Semantic.DeepEqual(c.Status, next.Status) {
		return nil
	}
	if err := r.write(ctx, c, next); err != nil {
		return err
	}
	recordEffect(ctx, c, next, d)
	return nil
}

// ObserveDeletion is called with the key of an object that does not exist: it
// was deleted, or is a default object that was never created.
func (r *Reconciler) ObserveDeletion(ctx context.Context, key types.NamespacedName) error {
	return r.ensureDefault(ctx, key, false)
}

// ensureDefault creates and records a default object; it ignores other keys.
func (r *Reconciler) ensureDefault(ctx context.Context, key types.NamespacedName, exists bool) error {
	spec, ok := defaults()[key.Name]
	if !ok || key.Namespace != v1alpha1.SystemNamespace {
		return nil
	}
	others, err := r.lister.OpsConfigInfoes(key.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list OpsConfigInfo: %w", err)
	}
	in := Default{Exists: exists, Recorded: r.installed.has(key.Name)}
	for _, c := range others {
		in.TypeTaken = in.TypeTaken || (c.Name != key.Name && c.Spec.Type == spec.Type)
	}
	d := DecideDefault(in)
	if d.Create {
		_, err := r.client.AppV1alpha1().OpsConfigInfoes(key.Namespace).Create(ctx, &v1alpha1.OpsConfigInfo{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: spec,
		}, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil
		case err != nil && !apierrs.IsAlreadyExists(err):
			logging.FromContext(ctx).Warnw("the default OpsConfigInfo was not created", "error", err, "next try", createRetry)
			return controller.NewRequeueAfter(createRetry)
		}
		logging.FromContext(ctx).Infow("created the default OpsConfigInfo")
	}
	if d.Record {
		return r.installed.add(ctx, key.Name, r.clock.Now())
	}
	return nil
}

// write writes the derived status.
func (r *Reconciler) write(ctx context.Context, old, next *v1alpha1.OpsConfigInfo) error {
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().OpsConfigInfoes(next.Namespace), fieldManager,
		old, next, statuspatch.OpsConfigInfoDerived)
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // deleted, or another object has the name: its event reconciles again
	}
	return err
}

// recordEffect records a Kubernetes Event when the effect changes. Its reason is
// the condition's.
func recordEffect(ctx context.Context, before, after *v1alpha1.OpsConfigInfo, d Decision) {
	was, is := before.Status.GetCondition(apis.ConditionReady), after.Status.GetCondition(apis.ConditionReady)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	level := corev1.EventTypeNormal
	if !d.Applied {
		level = corev1.EventTypeWarning
	}
	controller.GetEventRecorder(ctx).Event(after, level, d.Reason, d.Message)
}
