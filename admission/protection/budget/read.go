package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/podlist"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// reader finds the pods that a request makes unavailable.
type reader struct {
	pods   corev1client.PodsGetter
	lists  *podlist.Lister
	owners Owners
}

// read returns the Action of a request; nil if the request makes no pod unavailable, and takes none from its budget.
func (r reader) read(ctx context.Context, req *admissionv1.AdmissionRequest) (*Action, error) {
	switch {
	case req.Resource.Resource == "containerrecreaterequests":
		return r.ofRestart(ctx, req)
	case req.Resource.Resource == "replicasets" && req.Operation == admissionv1.Update:
		return ofReplicaSetUpdate(req)
	case req.Resource.Group != "" || req.Resource.Resource != "pods":
		return r.ofOwner(ctx, req)
	case req.SubResource == "eviction":
		return r.ofEviction(ctx, req)
	}
	before, err := decode[corev1.Pod](req.OldObject)
	if err != nil {
		return nil, err
	}
	if req.Operation == admissionv1.Delete {
		if endsWithItsJob(req, before) {
			return nil, nil
		}
		return &Action{Operation: v1alpha1.OperationDelete, Subject: "pod " + before.Name, Pods: []*corev1.Pod{before}}, nil
	}
	after, err := decode[corev1.Pod](req.Object)
	if err != nil {
		return nil, err
	}
	if req.SubResource == "resize" {
		return ofResize(before, after), nil
	}
	return ofUpdate(before, after), nil
}

// jobController is the user of the controller of Jobs. Without --use-service-account-credentials it has
// the name of all built-in controllers, some of which also delete pods because of their node, so that
// name is not exempt.
const jobController = "system:serviceaccount:kube-system:job-controller"

// endsWithItsJob reports whether the controller of Jobs deletes a pod of a Job: the Job failed, passed
// its deadline, succeeded early, was suspended, or has a lower parallelism. It does not replace the
// pod, and writes that the Job ended only after all these deletions, so a budget that denied them
// would keep the Job running.
func endsWithItsJob(req *admissionv1.AdmissionRequest, p *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(p)
	return req.UserInfo.Username == jobController && ref != nil && ref.Kind == "Job" && budget.GroupOf(ref.APIVersion) == "batch"
}

// ofPod reads the pod for an eviction or a ContainerRecreateRequest, which have only
// its name.
func (r reader) ofPod(ctx context.Context, namespace, name string, op v1alpha1.PodOperation) (*Action, error) {
	p, err := r.pods.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, nil // the API server, or OpenKruise, reports it
	} else if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	}
	return &Action{Operation: op, Subject: "pod " + name, Pods: []*corev1.Pod{p}}, nil
}

func (r reader) ofEviction(ctx context.Context, req *admissionv1.AdmissionRequest) (*Action, error) {
	a, err := r.ofPod(ctx, req.Namespace, req.Name, v1alpha1.OperationEvict)
	if err != nil || a == nil {
		return nil, err
	}
	if other, err := admission.EvictsOther(req, a.Pods[0].UID); err != nil || other {
		return nil, err
	}
	return a, nil
}

func (r reader) ofRestart(ctx context.Context, req *admissionv1.AdmissionRequest) (*Action, error) {
	type request struct {
		Spec struct {
			PodName    string `json:"podName"`
			Containers []struct {
				Name string `json:"name"`
			} `json:"containers"`
			budget.Restart
		} `json:"spec"`
	}
	asked, err := decode[request](req.Object)
	if err != nil || asked.Spec.PodName == "" {
		return nil, err
	}
	a, err := r.ofPod(ctx, req.Namespace, asked.Spec.PodName, v1alpha1.OperationRestart)
	if err != nil || a == nil {
		return nil, err
	}
	var names []string
	for _, c := range asked.Spec.Containers {
		names = append(names, c.Name)
	}
	a.Effects = budget.EffectsOfRestart(a.Pods[0], names, asked.Spec.Restart)
	return a, nil
}

// Labels of Serving.
const (
	// revisionLabel has the Revision of a pod.
	revisionLabel = "serving.knative.dev/revision"
	// serviceLabel has the Knative Service of a pod.
	serviceLabel = "serving.knative.dev/service"
)

// ofOwner returns the Action of the deletion of a controller. The deletion of the
// topmost controller is no disruption: somebody wants the application to end. Any other
// controller would be recreated, and its pods with it, unless it is deleted with one above. If it
// orphans its pods, they leave the target of a budget.
func (r reader) ofOwner(ctx context.Context, req *admissionv1.AdmissionRequest) (*Action, error) {
	deleted, err := decode[metav1.PartialObjectMetadata](req.OldObject)
	if err != nil {
		return nil, err
	}
	if deleted.DeletionTimestamp != nil {
		return nil, nil
	}
	chain, err := r.owners.Chain(ctx, req.Namespace, deleted.OwnerReferences, true)
	if err != nil {
		return nil, err
	}
	if len(chain) == 0 || chain.BeingDeleted() {
		return nil, nil
	}
	selector, err := selectorOf(req, deleted.Name)
	if err != nil {
		return nil, fmt.Errorf("parse selector of %s: %w", deleted.Name, err)
	}
	pods, _, err := r.lists.List(ctx, req.Namespace, selector.String())
	if err != nil {
		return nil, err
	}
	a := &Action{Operation: v1alpha1.OperationDelete, Subject: req.Resource.Resource + " " + deleted.Name, Controller: deleted.Name, Selector: selector}
	if orphans(req, deleted) {
		a.Orphaning = deleted.UID
	}
	for _, p := range pods {
		above, err := r.owners.Chain(ctx, req.Namespace, p.OwnerReferences, false)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(above, func(o budget.Owner) bool { return o.UID == deleted.UID }) {
			a.Pods = append(a.Pods, p)
		}
	}
	return a, nil
}

// selectorOf returns which pods the controller selects that the request deletes.
func selectorOf(req *admissionv1.AdmissionRequest, name string) (labels.Selector, error) {
	if req.Resource.Group == workload.KnativeService.Group { // a Revision has no selector
		return labels.SelectorFromSet(labels.Set{revisionLabel: name}), nil
	}
	object, err := decode[map[string]any](req.OldObject)
	if err != nil {
		return nil, err
	}
	selector, err := workload.PodSelector(*object)
	if err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// orphansByDefault are the kinds that the API server orphans if the request does not say otherwise.
var orphansByDefault = []metav1.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Version: "v1", Resource: "replicationcontrollers"},
}

// orphans reports whether a deletion orphans the pods: by its options, by a finalizer of the object, or by
// the default of the kind, in this order.
func orphans(req *admissionv1.AdmissionRequest, deleted *metav1.PartialObjectMetadata) bool {
	if len(req.Options.Raw) == 0 {
		return false // the API server always sends options
	}
	o, err := decode[metav1.DeleteOptions](req.Options)
	if err != nil {
		return false
	}
	dependents := o.OrphanDependents //nolint:staticcheck // older clients set OrphanDependents
	switch {
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy == metav1.DeletePropagationOrphan
	case dependents != nil:
		return *dependents
	case slices.Contains(deleted.Finalizers, metav1.FinalizerOrphanDependents):
		return true
	}
	return slices.Contains(orphansByDefault, req.Resource) && !slices.Contains(deleted.Finalizers, metav1.FinalizerDeleteDependents)
}

func decode[T any](raw runtime.RawExtension) (*T, error) {
	into := new(T)
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return nil, fmt.Errorf("decode the object of the request: %w", err)
	}
	return into, nil
}
