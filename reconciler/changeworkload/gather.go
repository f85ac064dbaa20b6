package changeworkload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// byController is the name of an index: the UID of an object's controller.
const byController = "controller"

// controllerOf is the index function of byController.
func controllerOf(obj any) ([]string, error) {
	o, ok := obj.(interface {
		GetOwnerReferences() []metav1.OwnerReference
	})
	if !ok {
		return nil, nil
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return []string{string(ref.UID)}, nil
		}
	}
	return nil, nil
}

// owned returns the objects of an index that a UID controls, by name. An index
// has no order of its own, and lists that follow from it would be written to
// status in another one each time.
func owned[T metav1.Object](in cache.Indexer, uid types.UID) ([]T, error) {
	objects, err := in.ByIndex(byController, string(uid))
	if err != nil {
		return nil, fmt.Errorf("look up by controller: %w", err)
	}
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

// podsOf returns the pods of a release: those of the workload's ReplicaSets
// that carry its version and attempt.
func podsOf(replicaSets, pods cache.Indexer, c *v1alpha1.ChangeWorkload) ([]Pod, error) {
	sets, err := owned[*appsv1.ReplicaSet](replicaSets, c.Spec.WorkloadRef.UID)
	if err != nil {
		return nil, err
	}
	var out []Pod
	for _, rs := range sets {
		if !belongs(rs, c) {
			continue
		}
		members, err := owned[*corev1.Pod](pods, rs.UID)
		if err != nil {
			return nil, err
		}
		for _, p := range members {
			if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
				out = append(out, podOf(p, c))
			}
		}
	}
	return out, nil
}

// belongs says whether a ReplicaSet is of the release. The Deployment
// controller copies the annotations from the Deployment.
func belongs(rs *appsv1.ReplicaSet, c *v1alpha1.ChangeWorkload) bool {
	return rs.Annotations[v1alpha1.VersionKey] == c.Spec.Reversion &&
		rs.Annotations[v1alpha1.AttemptAnnotation] == strconv.FormatInt(c.Spec.Attempt, 10)
}

func podOf(p *corev1.Pod, c *v1alpha1.ChangeWorkload) Pod {
	host := p.Spec.Hostname
	if host == "" {
		host = p.Name
	}
	return Pod{
		PodSummary: v1alpha1.PodSummary{
			App: c.Spec.AppName, HostName: host, WorkSpace: p.Namespace, Pod: p.Name,
			IP: p.Status.PodIP, Namespace: p.Namespace, UID: p.UID,
		},
		Finished:   p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue,
		ReadySince: readySince(p),
	}
}

func readySince(p *corev1.Pod) time.Time {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return cond.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// workloadOf reads what matters of a Deployment.
func workloadOf(d *appsv1.Deployment) Workload {
	attempt, err := strconv.ParseInt(d.Annotations[v1alpha1.AttemptAnnotation], 10, 64)
	if err != nil {
		attempt = -1 // not stamped: no ChangeWorkload is current
	}
	return Workload{
		Version:   d.Labels[v1alpha1.VersionKey],
		Attempt:   attempt,
		Replicas:  replicas(d),
		Complete:  complete(d),
		Suspend:   d.Labels[v1alpha1.SuspendLabel],
		Hold:      parse[v1alpha1.Hold](d.Annotations[v1alpha1.HoldAnnotation]),
		Bypass:    parse[v1alpha1.Bypass](d.Annotations[v1alpha1.BypassAnnotation]),
		Processed: d.Labels[v1alpha1.DefenseStatusLabel] == v1alpha1.DefenseStatusProcessed,

		IsRollback: v1alpha1.IsRollback(d.Annotations),
	}
}
