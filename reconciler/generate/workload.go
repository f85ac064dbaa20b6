package generate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appslisters "k8s.io/client-go/listers/apps/v1"
)

// The kinds whose annotations are followed.
const (
	deployment  = "Deployment"
	statefulSet = "StatefulSet"
)

// workload is what a generated budget follows from.
type workload struct {
	metav1.Object
	kind     string
	selector *metav1.LabelSelector
	// strategy is the maxUnavailable of its roll-outs, if it says one.
	strategy *intstr.IntOrString
}

// workloads reads them.
type workloads struct {
	deployments  appslisters.DeploymentLister
	statefulSets appslisters.StatefulSetLister
}

func (w workloads) get(kind, namespace, name string) (*workload, error) {
	if kind == deployment {
		d, err := w.deployments.Deployments(namespace).Get(name)
		if err != nil {
			return nil, err
		}
		found := &workload{Object: d, kind: kind, selector: d.Spec.Selector}
		if r := d.Spec.Strategy.RollingUpdate; r != nil {
			found.strategy = r.MaxUnavailable
		}
		return found, nil
	}
	s, err := w.statefulSets.StatefulSets(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	found := &workload{Object: s, kind: kind, selector: s.Spec.Selector}
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		found.strategy = r.MaxUnavailable
	}
	return found, nil
}

// keyOf is the key of a workload in the queue.
func keyOf(kind, namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: kind + "/" + name}
}

func parseKey(key string) (kind, namespace, name string, err error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 || parts[1] != deployment && parts[1] != statefulSet {
		return "", "", "", fmt.Errorf("no workload has the key %q", key)
	}
	return parts[1], parts[0], parts[2], nil
}

// nameOf is that of what is generated for a workload: kinds share a namespace.
func (w *workload) nameOf() string { return strings.ToLower(w.kind) + "-" + w.GetName() }
