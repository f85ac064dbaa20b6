// Package podpermission keeps pods until their permissions are revoked. It adds the
// finalizer stke.io/podpermission-protection to pods with the init container,
// before permissions can be granted to them. When a pod has ended, it asks the
// permission centre to revoke, and removes the finalizer when that is done or the
// deadline passes. At the deadline it reports a leak; the centre retries.
//
// It also reports pods without the required init container and pods whose address
// has a leaked grant, reports existing pods to the centre, and removes stale
// breaker entries.
package podpermission

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
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

// Centre revokes permissions at the permission centre.
type Centre interface {
	Revoke(ctx context.Context, r api.RevokeRequest) (api.RevokeResult, error)
}

// Reconciler reconciles pods.
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
	// retries has the pods whose permissions are being revoked.
	retries *retries
	// outage is whether the centre does not answer.
	outage outage
	// unsentLetGo has pods that were let go, which the centre does not know yet.
	unsentLetGo  *unsentLetGoPods
	requiredSets requiredsets.Resolver
	// ownersWithoutSets has the namespaces and UIDs of controllers of pods that request no permission sets.
	ownersWithoutSets *utilcache.LRUExpireCache
	// ownersReads limits the reads of the owners of new pods in namespaces that are not enabled.
	ownersReads *rate.Limiter
	// uninjected has pods without the required init container.
	uninjected *uninjectedPods
	// leaks has the addresses with leaked grants.
	leaks *leakTracker
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile reconciles one pod.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("key %q: %w", key, err))
	}
	at := types.NamespacedName{Namespace: namespace, Name: name}
	p, err := r.pods.Pods(namespace).Get(name)
	if apierrs.IsNotFound(err) {
		// In each replica: one that leads again reports the pods that it remembers.
		r.uninjected.forget(at)
		r.leaks.forget(at)
		r.retries.forget(at)
		return nil
	} else if err != nil {
		return err
	}
	if !r.IsLeaderFor(at) {
		return controller.NewSkipKey(key)
	}
	checked := r.checkInjection(ctx, p)
	if later, _ := controller.IsRequeueKey(checked); checked != nil && !later {
		return checked
	}
	r.leaks.check(p, r.clock.Now())
	if err := r.reconcileFinalizer(ctx, at, p); err != nil {
		return err
	}
	return checked
}

// reconcileFinalizer adds the finalizer to the pod, or revokes and removes it.
func (r *Reconciler) reconcileFinalizer(ctx context.Context, at types.NamespacedName, p *corev1.Pod) error {
	now := r.clock.Now()
	in := Input{Pod: p, Now: now}
	if p.DeletionTimestamp != nil && p.Spec.NodeName != "" {
		n, err := r.nodes.Get(p.Spec.NodeName)
		if err != nil && !apierrs.IsNotFound(err) {
			return err
		}
		in.NodeGone, in.NodeNotReady = nodeState(n)
	}
	d := Decide(in)
	switch d.Action {
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

// revoke revokes the permissions of the pod and removes the finalizer when that is
// done or the deadline passes.
func (r *Reconciler) revoke(ctx context.Context, at types.NamespacedName, p *corev1.Pod, d Decision) error {
	s := r.settings()
	firstSeen, delay := r.retries.next(at, p.UID, r.clock.Now())
	deadline := Deadline(d.Ended, firstSeen, s.RevokeDeadline)
	// A hanging centre must not keep the pod beyond the deadline.
	result, err := r.callCentre(ctx, api.RevokeRequest{Cluster: s.Cluster, PodUID: string(p.UID)}, max(deadline.Sub(r.clock.Now()), time.Second))
	authorized := podmeta.Condition(p, podmeta.ConditionAuthorized)
	revocation := DecideRevocation(CentreState{Err: err, RevokeResult: result, Authorized: authorized != nil && authorized.Status == corev1.ConditionTrue}, r.clock.Now(), deadline)
	switch revocation.Action {
	case Retry:
		if err != nil || revocation.NoApplications {
			logging.FromContext(ctx).Warnw("could not revoke the permissions of a pod yet; the revocation is retried", "pod", at.String(), "error", err, "noApplications", revocation.NoApplications)
		}
		return controller.NewRequeueAfter(min(delay, max(deadline.Sub(r.clock.Now()), time.Millisecond)))
	case GiveUp:
		r.unsentLetGo.add(p.UID)
	case RemoveFinalizer:
	}
	// The result is reported before the finalizer is removed. After a crash it is
	// reported again with the same event ids.
	r.reporter.revocation(ctx, p, r.retries.unreported(at, revocation), err)
	if err := r.patchFinalizer(ctx, p, map[string]any{"$deleteFromPrimitiveList/finalizers": []string{podmeta.Finalizer}}); err != nil {
		return err
	}
	r.retries.forget(at)
	return nil
}

// callCentre sends the request, or returns the error of another pod's call if the centre does not answer.
func (r *Reconciler) callCentre(ctx context.Context, request api.RevokeRequest, timeout time.Duration) (api.RevokeResult, error) {
	began := r.clock.Now()
	if err := r.outage.begin(began); err != nil {
		return api.RevokeResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := r.centre.Revoke(ctx, request)
	r.outage.ended(began, r.clock.Now(), err)
	return result, err
}

// patchFinalizer changes only Breakwater's finalizer, and only of the pod with this
// UID.
func (r *Reconciler) patchFinalizer(ctx context.Context, p *corev1.Pod, change map[string]any) error {
	change["uid"] = p.UID
	patch, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	_, err = r.kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrs.IsNotFound(err), apierrs.IsConflict(err):
		return nil // the pod no longer exists, or another pod has its name
	case apierrs.IsInvalid(err), apierrs.IsForbidden(err):
		if live, e := r.kube.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{}); e == nil && live.DeletionTimestamp != nil && p.DeletionTimestamp == nil {
			return nil // the pod is terminating: no finalizer can be added, and nothing was granted
		}
	}
	if err != nil {
		r.recorder.Eventf(p, corev1.EventTypeWarning, podmeta.ReasonFinalizerNotWritten,
			"finalizer %s could not be added or removed; does a webhook deny updates of pods? %v", podmeta.Finalizer, err)
		return fmt.Errorf("patch the finalizer: %w", err)
	}
	return nil
}
