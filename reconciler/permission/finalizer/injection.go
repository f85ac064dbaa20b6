package finalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// found are pods that should have been injected and were not, by why.
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

// counts returns how many there are, by why; each reason has one.
func (f *uninjectedPods) counts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int64{podmeta.ReasonPermissionNotInjected: 0, podmeta.ReasonNamespaceNotEnabled: 0}
	for _, reason := range f.all {
		counts[reason]++
	}
	return counts
}

// inspect tells of a pod that should have been injected and was not.
func (r *Reconciler) checkInjection(ctx context.Context, p *corev1.Pod) error {
	at := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	if mirror || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
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

// onNamespaces returns a handler for namespaces that calls look with the name of
// each one that came, or of which what its pods ask for changed: a watch of pods
// may be ahead of that of namespaces, and pods that run do not change with theirs.
func namespaceHandler(look func(namespace string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if n, ok := obj.(*corev1.Namespace); ok {
				look(n.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*corev1.Namespace)
			is, ok2 := after.(*corev1.Namespace)
			if ok && ok2 && requestOf(was) != requestOf(is) {
				look(is.Name)
			}
		},
	}
}

// request is what a namespace says of its pods' permissions.
type namespaceRequest struct {
	label, sets string
	hasSets     bool
}

func requestOf(n *corev1.Namespace) namespaceRequest {
	sets, has := n.Annotations[podmeta.SetAnnotation]
	return namespaceRequest{n.Labels[podmeta.Label], sets, has}
}

func (r *Reconciler) injectionProblem(ctx context.Context, p *corev1.Pod) (InjectionProblem, error) {
	if podmeta.InitContainer(p) != nil && p.Labels[podmeta.Label] == podmeta.LabelRequired {
		return InjectionProblem{}, nil // most of those that ask
	}
	n, err := r.namespaces.Get(p.Namespace)
	if apierrs.IsNotFound(err) {
		return InjectionProblem{}, nil
	} else if err != nil {
		return InjectionProblem{}, err
	}
	enabled := n.Labels[podmeta.Label] == podmeta.LabelEnabled
	value, asks := p.Annotations[podmeta.SetAnnotation]
	if !asks {
		value, asks = n.Annotations[podmeta.SetAnnotation]
	}
	told := podmeta.Condition(p, podmeta.ConditionInjected) != nil
	if !enabled && !asks && !told {
		return InjectionProblem{}, nil // the owners of every pod of the cluster are not read
	}
	if enabled || told {
		if value, _, err = r.wants.Resolve(ctx, p.Namespace, p); err != nil {
			return InjectionProblem{}, err
		}
	}
	return FindInjectionProblem(p, value, enabled), nil
}

func (r *Reconciler) setInjectedCondition(ctx context.Context, p *corev1.Pod, d InjectionProblem) error {
	return r.patchCondition(ctx, p, corev1.PodCondition{Type: podmeta.ConditionInjected, Status: corev1.ConditionFalse,
		Reason: d.Reason, Message: d.Message, LastTransitionTime: metav1.NewTime(r.clock.Now())})
}

// forgetInjected takes the condition off a pod that asks for nothing any more.
func (r *Reconciler) removeInjectedCondition(ctx context.Context, p *corev1.Pod) error {
	return r.patchCondition(ctx, p, map[string]any{"type": podmeta.ConditionInjected, "$patch": "delete"})
}

// patchCondition writes an entry of a strategic merge patch.
func (r *Reconciler) patchCondition(ctx context.Context, p *corev1.Pod, condition any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = r.kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
		return fmt.Errorf("write the condition: %w", err)
	}
	return nil
}
