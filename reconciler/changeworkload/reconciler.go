// Package changeworkload follows one version of a workload on its way out. The
// states are
//
//	"" -> Running <-> TimeOutPreThreshold -> Success | Suspend | Failed
//	Success -> Suspend when a later verdict or a person fails a pod
//
// It claims finished pods into ChangePods, adds up what became of them, and
// holds the workload on the first fail. What it learns of an old version never
// touches the workload.
package changeworkload

import (
	"context"
	"fmt"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/metric"
	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/settings"
	"github.com/breakwater-dev/breakwater/apis/change/statuspatch"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/reconciler/wakeup"
)

// fieldManager owns what this binary applies.
const fieldManager = "controller"

// retryMoved is how long to wait when the workload has moved on: its own event
// is under way, this is for the case that it was something else.
const retryMoved = time.Second

// retryStale is how long to wait for the cache when a write showed it to be behind.
const retryStale = 50 * time.Millisecond

// Sender sends a CloudEvent without blocking.
type Sender interface {
	Send(ctx context.Context, event cloudevents.Event)
}

// Reconciler follows ChangeWorkloads.
type Reconciler struct {
	kube        kubernetes.Interface
	client      versioned.Interface
	deployments appslisters.DeploymentLister
	namespaces  corelisters.NamespaceLister
	// replicaSets, pods and changePods carry the index byController.
	replicaSets, pods, changePods cache.Indexer
	// settings returns the settings in force.
	settings func() settings.Settings
	// serverConfigured says whether there is a server to ask.
	serverConfigured func() bool
	sender           Sender
	wakeups          *wakeup.Schedule
	// slots remembers which slot of progress was told of last, by UID.
	slots *lru.Cache
	// unjudged counts orders that nobody judged in time.
	unjudged metric.Int64Counter
	clock    clock.PassiveClock
}

var _ reconcilerchangeworkload.Interface = (*Reconciler)(nil)

// ReconcileKind follows one ChangeWorkload.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.ChangeWorkload) reconciler.Event {
	if c.DeletionTimestamp != nil {
		return nil
	}
	in, deployment, err := r.gather(c)
	if err != nil || deployment == nil {
		return err
	}
	d := Decide(in)

	// First what stops harm, then what is only told.
	if err := r.act(ctx, deployment, c, d.Action, in.Now); isStale(err) {
		return controller.NewRequeueAfter(retryMoved)
	} else if err != nil {
		return err
	}
	if err := r.claim(ctx, in, d.Batches); isStale(err) {
		return controller.NewRequeueAfter(retryStale)
	} else if err != nil {
		return err
	}
	again, err := r.record(ctx, in, d, deployment)
	if apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return controller.NewRequeueAfter(retryStale)
	} else if err != nil {
		return err
	}
	next, err := r.emptyInbox(ctx, in)
	if err != nil {
		return err
	}
	again = wakeup.Sooner(again, next)
	next, err = r.wakeOrder(ctx, in, d)
	if err != nil {
		return err
	}
	again = wakeup.Sooner(again, next)
	next, err = r.tellProgress(ctx, in, d)
	if err != nil {
		return err
	}
	again = wakeup.Sooner(again, next)
	if !d.Deadline.IsZero() {
		again = wakeup.Sooner(again, wakeup.Until(d.Deadline, in.Now))
	}
	if again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// gather reads everything that decides. A nil Deployment means that there is
// nothing to do: the workload is gone (the garbage collector takes the
// ChangeWorkload), is another of the same name, or its namespace is not opted in.
func (r *Reconciler) gather(c *v1alpha1.ChangeWorkload) (Input, *appsv1.Deployment, error) {
	ns, err := r.namespaces.Get(c.Namespace)
	if apierrs.IsNotFound(err) || (err == nil && !v1alpha1.OptedIn(ns)) {
		return Input{}, nil, nil
	} else if err != nil {
		return Input{}, nil, fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	d, err := r.deployments.Deployments(c.Namespace).Get(c.Spec.WorkloadRef.Name)
	if apierrs.IsNotFound(err) || (err == nil && (d.UID != c.Spec.WorkloadRef.UID || d.DeletionTimestamp != nil)) {
		return Input{}, nil, nil
	} else if err != nil {
		return Input{}, nil, fmt.Errorf("read Deployment %s/%s: %w", c.Namespace, c.Spec.WorkloadRef.Name, err)
	}
	pods, err := podsOf(r.replicaSets, r.pods, c)
	if err != nil {
		return Input{}, nil, err
	}
	changePods, err := owned[*v1alpha1.ChangePod](r.changePods, c.UID)
	if err != nil {
		return Input{}, nil, err
	}
	return Input{
		Now: r.clock.Now(), Settings: r.settings(), ServerConfigured: r.serverConfigured(),
		ChangeWorkload: c, Workload: workloadOf(d), Pods: pods, ChangePods: changePods,
	}, d, nil
}

// act changes the workload.
func (r *Reconciler) act(ctx context.Context, d *appsv1.Deployment, c *v1alpha1.ChangeWorkload, action Action, now time.Time) error {
	var patch []byte
	var err error
	switch action {
	case ActionNone:
		return nil
	case ActionHold:
		patch, err = holdPatch(d, c, now)
	case ActionResume:
		patch, err = resumePatch(d, c)
	case ActionProcessed:
		patch, err = processedPatch(c)
	}
	if err != nil {
		return err
	}
	_, err = r.kube.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("%s Deployment %s/%s: %w", action, d.Namespace, d.Name, err)
	}
	logging.FromContext(ctx).Infow("deployment", "action", action)
	announceAction(ctx, d, c, action)
	return nil
}

// claim puts pods before the judge.
func (r *Reconciler) claim(ctx context.Context, in Input, batches [][]v1alpha1.PodSummary) error {
	at := places(in, batches)
	for i, pods := range batches {
		cp := changePod(in.ChangeWorkload, at[i], pods, in.Now)
		_, err := r.client.AppV1alpha1().ChangePods(cp.Namespace).Create(ctx, cp, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return fmt.Errorf("create ChangePod %s/%s: %w", cp.Namespace, cp.Name, err)
		}
	}
	return nil
}

// record writes the derived status, and tells of what changed. It returns how
// long the write has to wait, if it has to.
func (r *Reconciler) record(ctx context.Context, in Input, d Decision, deployment *appsv1.Deployment) (time.Duration, error) {
	next := derive(in, d)
	kind := compare(in.ChangeWorkload, next)
	if kind == same || (kind == progress && len(d.Batches) > 0) {
		return 0, nil // the ChangePods that were just made bring us back
	}
	if wait := writable(kind, in.ChangeWorkload, in.Now); wait > 0 {
		return wait, nil
	}
	body, err := statuspatch.Derived(next, statuspatch.ChangeWorkloadDerived)
	if err != nil {
		return 0, err
	}
	_, err = r.client.AppV1alpha1().ChangeWorkloads(next.Namespace).Patch(ctx, next.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true)}, "status")
	if err != nil {
		return 0, fmt.Errorf("write the status of ChangeWorkload %s/%s: %w", next.Namespace, next.Name, err)
	}
	return 0, r.announce(ctx, in, next, deployment, d)
}

// isStale says whether a write failed because the cache was behind: the
// workload is another version by now, or the ChangePod exists.
func isStale(err error) bool {
	return apierrs.IsInvalid(err) || apierrs.IsConflict(err) || apierrs.IsAlreadyExists(err) || apierrs.IsNotFound(err)
}
