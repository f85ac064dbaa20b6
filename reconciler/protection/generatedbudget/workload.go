package generatedbudget

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appslisters "k8s.io/client-go/listers/apps/v1"

	apiworkload "github.com/breakwater-dev/breakwater/internal/workload"
)

// workload has the fields of a workload that a generated budget follows from.
type workload struct {
	metav1.Object
	kind       kind
	apiVersion string
	selector   *metav1.LabelSelector
	// podLabels are the labels of the pods that it will create.
	podLabels map[string]string
	// strategyMaxUnavailable is maxUnavailable of its rollout strategy; nil if not set.
	strategyMaxUnavailable *intstr.IntOrString
	// template has the annotations of its template, if they apply to the workload.
	template map[string]string
	// ofRevision reports whether the workload is the Deployment of a Revision of a Knative Service.
	ofRevision bool
}

// budgetName returns the name of the workload's generated budgets. It contains the kind,
// because a namespace may have workloads of several kinds with one name.
func (w *workload) budgetName() string { return strings.ToLower(w.kind.id) + "-" + w.GetName() }

// annotations returns the annotations that apply to the workload, its own first. Those of the namespace do not
// apply below a UnitedDeployment, whose generated budgets cover the same pods: Kubernetes evicts no pod that
// two PodDisruptionBudgets select, and a request would be charged to two PodUnavailableBudgets.
func (w *workload) annotations(ns *corev1.Namespace) []map[string]string {
	own := []map[string]string{w.GetAnnotations(), w.template}
	if owner := metav1.GetControllerOfNoCopy(w); owner != nil {
		if k, _ := kindOf(owner.APIVersion, owner.Kind); k.id == unitedDeployment.id {
			return own
		}
	}
	return append(own, ns.Annotations)
}

// workloads reads workloads of built-in kinds and of CRDs.
type workloads struct {
	deployments  appslisters.DeploymentLister
	statefulSets appslisters.StatefulSetLister
	custom       *customWorkloads
}

func (w workloads) get(k kind, namespace, name string) (*workload, error) {
	found := &workload{kind: k, apiVersion: "apps/v1"}
	switch k.id {
	case deployment.id:
		d, err := w.deployments.Deployments(namespace).Get(name)
		if err != nil {
			return nil, err
		}
		found.Object, found.selector, found.podLabels = d, d.Spec.Selector, d.Spec.Template.Labels
		if r := d.Spec.Strategy.RollingUpdate; r != nil {
			found.strategyMaxUnavailable = r.MaxUnavailable
		}
		_, _, found.ofRevision = apiworkload.KnativeServiceOf(d)
		return found, nil
	case statefulSet.id:
		s, err := w.statefulSets.StatefulSets(namespace).Get(name)
		if err != nil {
			return nil, err
		}
		found.Object, found.selector, found.podLabels = s, s.Spec.Selector, s.Spec.Template.Labels
		if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
			found.strategyMaxUnavailable = r.MaxUnavailable
		}
		return found, nil
	}
	if other := w.custom.get(k, namespace, name); other != nil {
		return other, nil
	}
	return nil, apierrs.NewNotFound(schema.GroupResource{Group: k.group, Resource: k.resource}, name)
}

// enqueueAll enqueues the workloads of a namespace, or of all namespaces if it is "".
func (w workloads) enqueueAll(namespace string, enqueue func(types.NamespacedName)) error {
	deployments, err := w.deployments.Deployments(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range deployments {
		enqueue(keyOf(deployment, d.Namespace, d.Name))
	}
	sets, err := w.statefulSets.StatefulSets(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for _, s := range sets {
		enqueue(keyOf(statefulSet, s.Namespace, s.Name))
	}
	w.custom.enqueueAll(namespace, enqueue)
	return nil
}

// keyOf returns the queue key of a workload.
func keyOf(k kind, namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: k.id + "/" + name}
}

func parseKey(key string) (k kind, namespace, name string, err error) {
	parts := strings.Split(key, "/")
	if len(parts) == 3 {
		for _, k := range kinds() {
			if k.id == parts[1] {
				return k, parts[0], parts[2], nil
			}
		}
	}
	return kind{}, "", "", fmt.Errorf("invalid workload key %q", key)
}
