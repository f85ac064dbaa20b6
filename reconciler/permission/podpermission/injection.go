package podpermission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// newPodTime is how long a pod is new. In a namespace that is not enabled, the owners of older pods are
	// not read, because a cluster may have many such pods. It is longer than a change of the leader.
	newPodTime = 5 * time.Minute
	// ownersTTL is how long it is remembered that a controller and its owners request no permission sets.
	ownersTTL = time.Minute
	// maxOwners is how many such controllers are remembered.
	maxOwners = 10_000
	// ownersReadsPerSecond is how many chains of owners of new pods are read per second: in a batch cluster
	// each pod may have its own controller, and the workers also add finalizers, for which pods wait.
	ownersReadsPerSecond = 20
	// ownersReadDelay is after how long a pod beyond this limit is checked again.
	ownersReadDelay = 5 * time.Second
	// ownersReadBurst is large enough for pods that all come again at the same time.
	ownersReadBurst = ownersReadsPerSecond * int(ownersReadDelay/time.Second)
)

// uninjectedPods maps pods without the required init container to the reason.
type uninjectedPods struct {
	mu  sync.Mutex
	all map[types.NamespacedName]string
}

func newUninjectedPods() *uninjectedPods {
	return &uninjectedPods{all: map[types.NamespacedName]string{}}
}

func (f *uninjectedPods) set(at types.NamespacedName, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[at] = reason
}

func (f *uninjectedPods) forget(at types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, at)
}

// counts returns the number of pods by reason, including reasons without pods.
func (f *uninjectedPods) counts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int64{podmeta.ReasonPermissionNotInjected: 0, podmeta.ReasonNamespaceNotEnabled: 0}
	for _, reason := range f.all {
		counts[reason]++
	}
	return counts
}

// checkInjection reports a pod that lacks the required init container.
func (r *Reconciler) checkInjection(ctx context.Context, p *corev1.Pod) error {
	at := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	if mirror || !workload.PodActive(p) {
		r.uninjected.forget(at)
		return nil
	}
	d, err := r.injectionProblem(ctx, p)
	if err != nil {
		return err
	}
	c := podmeta.Condition(p, podmeta.ConditionInjected)
	if d.Reason == "" {
		r.uninjected.forget(at)
		if c == nil {
			return nil
		}
		return r.removeInjectedCondition(ctx, p)
	}
	r.uninjected.set(at, d.Reason)
	if c != nil && c.Reason == d.Reason {
		return nil
	}
	if err := r.setInjectedCondition(ctx, p, d); err != nil {
		return err
	}
	r.recorder.Event(p, corev1.EventTypeWarning, d.Reason, d.Message)
	return nil
}

// namespaceHandler returns a handler that calls enqueue with the name of each added
// namespace and of each namespace whose request changed. The watch of pods may be
// ahead of that of namespaces, and running pods do not change with their namespace.
func namespaceHandler(enqueue func(namespace string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if n, ok := obj.(*corev1.Namespace); ok {
				enqueue(n.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*corev1.Namespace)
			is, ok2 := after.(*corev1.Namespace)
			if ok && ok2 && requestOf(was) != requestOf(is) {
				enqueue(is.Name)
			}
		},
	}
}

// namespaceRequest has the label and the annotation by which a namespace requests permission
// sets for its pods.
type namespaceRequest struct {
	label, sets string
	hasSets     bool
}

func requestOf(n *corev1.Namespace) namespaceRequest {
	sets, has := n.Annotations[podmeta.PermissionSetAnnotation]
	return namespaceRequest{n.Labels[podmeta.Label], sets, has}
}

func (r *Reconciler) injectionProblem(ctx context.Context, p *corev1.Pod) (InjectionProblem, error) {
	if podmeta.InitContainer(p) != nil && p.Labels[podmeta.Label] == podmeta.LabelRequired {
		return InjectionProblem{}, nil // the usual case of pods with permission sets
	}
	n, err := r.namespaces.Get(p.Namespace)
	if apierrs.IsNotFound(err) {
		return InjectionProblem{}, nil
	} else if err != nil {
		return InjectionProblem{}, err
	}
	enabled := n.Labels[podmeta.Label] == podmeta.LabelEnabled
	_, podRequests := p.Annotations[podmeta.PermissionSetAnnotation]
	_, namespaceRequests := n.Annotations[podmeta.PermissionSetAnnotation]
	reported := podmeta.Condition(p, podmeta.ConditionInjected) != nil
	var value string
	if enabled || reported || podRequests || namespaceRequests {
		value, _, err = r.requiredSets.Resolve(ctx, p.Namespace, p)
	} else {
		value, err = r.setsOfNewPod(ctx, p)
	}
	if err != nil {
		return InjectionProblem{}, err
	}
	return FindInjectionProblem(p, value, enabled), nil
}

// setsOfNewPod returns the annotation of the owners of a new pod in a namespace that is not enabled. The
// chain of each controller is read once in ownersTTL. The error may requeue the pod.
func (r *Reconciler) setsOfNewPod(ctx context.Context, p *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || r.clock.Since(p.CreationTimestamp.Time) > newPodTime {
		return "", nil
	}
	key := p.Namespace + "/" + string(owner.UID) // a user may write the UID of another namespace's controller
	if _, known := r.ownersWithoutSets.Get(key); known {
		return "", nil
	}
	if !r.ownersReads.AllowN(r.clock.Now(), 1) {
		return "", controller.NewRequeueAfter(ownersReadDelay)
	}
	value, found, err := r.requiredSets.Owners.Annotation(ctx, p.Namespace, p.OwnerReferences, podmeta.PermissionSetAnnotation)
	if err == nil && !found {
		r.ownersWithoutSets.Add(key, nil, ownersTTL)
	}
	return value, err
}

func newOwnersWithoutSets(c clock.PassiveClock) *utilcache.LRUExpireCache {
	return utilcache.NewLRUExpireCacheWithClock(maxOwners, c)
}

func newOwnersReads() *rate.Limiter { return rate.NewLimiter(ownersReadsPerSecond, ownersReadBurst) }

func (r *Reconciler) setInjectedCondition(ctx context.Context, p *corev1.Pod, d InjectionProblem) error {
	return podmeta.PatchCondition(ctx, r.kube.CoreV1(), p, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse,
		Reason: d.Reason, Message: d.Message, LastTransitionTime: metav1.NewTime(r.clock.Now())})
}

// removeInjectedCondition removes the condition of a pod without a problem.
func (r *Reconciler) removeInjectedCondition(ctx context.Context, p *corev1.Pod) error {
	return podmeta.PatchCondition(ctx, r.kube.CoreV1(), p, map[string]any{"type": podmeta.ConditionInjected, "$patch": "delete"})
}
