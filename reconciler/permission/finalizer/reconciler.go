// Package finalizer keeps pods that were granted something until that was taken
// back. It puts the finalizer stke.io/podpermission-protection on pods that
// carry the init container, before anything can be granted to them; when they
// have ended it has the permission centre revoke, and takes the finalizer off on
// proof, or when a deadline is over: then the leak is told, and the centre goes
// on trying.
//
// Beside that it is the second line of defence: it finds pods that should have
// been injected and were not, and addresses that came back while an old grant
// still holds for them; it reports the living pods to the centre, and cleans the
// record of the breaker.
package finalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// Centre is the permission centre.
type Centre interface {
	Revoke(ctx context.Context, r api.RevokeRequest) ([]api.Application, error)
}

// Reconciler looks after pods.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	kube       kubernetes.Interface
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	centre     Centre
	settings   func() settings.Settings
	clock      clock.PassiveClock
	recorder   record.EventRecorder
	reporter   *reporter
	// tries knows for which pods it was tried to revoke, and how often.
	retries *retries
	// letGo are pods that did not wait, of which the centre is to hear.
	unreported *unreportedPods
	wants      requiredsets.Resolver
	// open are pods that should have been injected and were not, leaks the
	// addresses for which an old grant holds.
	uninjected *uninjectedPods
	leaks      *leakTracker
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile looks at one pod.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("key %q: %w", key, err))
	}
	at := types.NamespacedName{Namespace: namespace, Name: name}
	if !r.IsLeaderFor(at) {
		return controller.NewSkipKey(key)
	}
	p, err := r.pods.Pods(namespace).Get(name)
	if apierrs.IsNotFound(err) {
		r.uninjected.forget(at)
		r.leaks.forget(at)
		r.retries.forget(at)
		return nil
	} else if err != nil {
		return err
	}
	if err := r.checkInjection(ctx, p); err != nil {
		return err
	}
	r.leaks.check(ctx, p)
	return r.reconcileFinalizer(ctx, at, p)
}

// protect puts the finalizer on the pod, or takes it off.
func (r *Reconciler) reconcileFinalizer(ctx context.Context, at types.NamespacedName, p *corev1.Pod) error {
	now := r.clock.Now()
	in := Input{Pod: p, Now: now}
	if p.DeletionTimestamp != nil && p.Spec.NodeName != "" {
		n, err := r.nodes.Get(p.Spec.NodeName)
		if err != nil && !apierrs.IsNotFound(err) {
			return err
		}
		in.NodeLost, in.NodeNotReady = nodeState(n)
	}
	d := Decide(in)
	switch d.Outcome {
	case AddFinalizer:
		return r.patchFinalizer(ctx, p, map[string]any{"finalizers": []string{podmeta.Finalizer}})
	case Wait:
		return controller.NewRequeueAfter(max(d.RecheckAt.Sub(now), time.Second))
	case Revoke:
		return r.revoke(ctx, at, p, d)
	case Nothing:
	}
	r.retries.forget(at)
	return nil
}

// revoke has everything that was granted to the pod taken back.
func (r *Reconciler) revoke(ctx context.Context, at types.NamespacedName, p *corev1.Pod, d Decision) error {
	s := r.settings()
	seen, again := r.retries.next(at, p.UID, r.clock.Now())
	deadline := Deadline(d.Ended, seen, s.RevokeDeadline)
	// A centre that hangs must not hold the pod for longer.
	asking, cancel := context.WithTimeout(ctx, max(deadline.Sub(r.clock.Now()), time.Second))
	all, err := r.centre.Revoke(asking, api.RevokeRequest{Cluster: s.Cluster, PodUID: string(p.UID)})
	cancel()
	settlement := DecideRevocation(CentreState{Err: err, Applications: all}, r.clock.Now(), deadline)
	switch settlement.Action {
	case Retry:
		if err != nil {
			logging.FromContext(ctx).Warnw("permissions could not be revoked yet", "pod", at.String(), "error", err)
		}
		return controller.NewRequeueAfter(min(again, max(deadline.Sub(r.clock.Now()), time.Millisecond)))
	case GiveUp:
		r.unreported.add(s.Cluster, p.UID)
	case RemoveFinalizer:
	}
	// What is told is told before the pod can go, and again after a crash: the
	// events have the same id.
	r.reporter.revocation(ctx, p, settlement, err)
	if err := r.patchFinalizer(ctx, p, map[string]any{"$deleteFromPrimitiveList/finalizers": []string{podmeta.Finalizer}}); err != nil {
		return err
	}
	r.retries.forget(at)
	return nil
}

// patchFinalizer changes our finalizer and no other, of this very pod.
func (r *Reconciler) patchFinalizer(ctx context.Context, p *corev1.Pod, change map[string]any) error {
	change["uid"] = p.UID
	patch, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	_, err = r.kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrs.IsNotFound(err), apierrs.IsConflict(err):
		return nil // it is gone, or another has its name
	case apierrs.IsInvalid(err), apierrs.IsForbidden(err):
		if live, e := r.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{}); e == nil && live.DeletionTimestamp != nil && p.DeletionTimestamp == nil {
			return nil // it goes meanwhile: no finalizer can be added any more, and nothing was granted
		}
	}
	if err != nil {
		return fmt.Errorf("change the finalizer: %w", err)
	}
	return nil
}
