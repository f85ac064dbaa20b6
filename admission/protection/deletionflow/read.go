package deletionflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// reader finds the pods that a request deletes.
type reader struct {
	pods       corev1client.PodsGetter
	objects    metadata.Interface
	namespaces corev1listers.NamespaceLister
}

// request is an admission request with its pods.
type request struct {
	deletionflow.Request
	// subject names the object of the request in messages.
	subject string
	// pod is the pod of the request; nil for a namespace.
	pod *corev1.Pod
}

// read returns nil if the request deletes nothing.
func (r reader) read(ctx context.Context, req *admissionv1.AdmissionRequest) (*request, error) {
	if req.Resource.Resource == "namespaces" {
		return r.ofNamespace(ctx, req)
	}
	pod, dryRun, err := r.pod(ctx, req)
	if err != nil || pod == nil {
		return nil, err
	}
	ns, err := r.namespaces.Get(req.Namespace)
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", req.Namespace, err)
	}
	return &request{
		subject: "pod " + pod.Namespace + "/" + pod.Name, pod: pod,
		Request: deletionflow.Request{
			UID: pod.UID, Namespace: namespaceOf(ns), Pods: []deletionflow.Pod{podOf(pod)},
			Eviction: req.SubResource == "eviction", DryRun: dryRun,
			User: req.UserInfo.Username, Owner: ownerOf(pod),
		},
	}, nil
}

// pod returns the pod of a request; nil if it does not exist, or if an eviction is of an earlier pod of its name. The pod of an eviction is read from
// the API server.
func (r reader) pod(ctx context.Context, req *admissionv1.AdmissionRequest) (pod *corev1.Pod, dryRun bool, err error) {
	dryRun, err = admission.DryRun(req)
	if err != nil {
		return nil, false, err
	}
	if req.SubResource != "eviction" {
		pod = &corev1.Pod{}
		if err := json.Unmarshal(req.OldObject.Raw, pod); err != nil {
			return nil, false, fmt.Errorf("decode pod: %w", err)
		}
		return pod, dryRun, nil
	}
	pod, err = r.pods.Pods(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, false, nil // the API server answers NotFound itself
	} else if err != nil {
		return nil, false, fmt.Errorf("read pod %s: %w", req.Name, err)
	}
	if other, err := admission.EvictsOther(req, pod.UID); err != nil || other {
		return nil, false, err
	}
	return pod, dryRun, nil
}

// active is the field selector of pods that have a node and are not completed.
const active = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

func (r reader) ofNamespace(ctx context.Context, req *admissionv1.AdmissionRequest) (*request, error) {
	var ns corev1.Namespace
	if err := json.Unmarshal(req.OldObject.Raw, &ns); err != nil {
		return nil, fmt.Errorf("decode namespace: %w", err)
	}
	out := &request{
		subject: "namespace " + ns.Name,
		Request: deletionflow.Request{
			UID: ns.UID, Namespace: namespaceOf(&ns), OfNamespace: true, DryRun: ptr.Deref(req.DryRun, false),
			User: req.UserInfo.Username, Owner: "Namespace " + ns.Name,
		},
	}
	if out.Namespace.Terminating {
		return out, nil
	}
	// Pages of metadata: a namespace may have thousands of pods.
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.objects.Resource(podsResource).Namespace(ns.Name).List(ctx, options)
	})
	if err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: active}, func(o runtime.Object) error {
		p, err := meta.Accessor(o)
		if err == nil {
			out.Pods = append(out.Pods, deletionflow.Pod{Labels: p.GetLabels(), Terminating: p.GetDeletionTimestamp() != nil})
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", ns.Name, err)
	}
	return out, nil
}

func namespaceOf(ns *corev1.Namespace) deletionflow.Namespace {
	return deletionflow.Namespace{Name: ns.Name, Labels: ns.Labels, Terminating: ns.DeletionTimestamp != nil}
}

func podOf(p *corev1.Pod) deletionflow.Pod {
	return deletionflow.Pod{
		Labels:      p.Labels,
		Completed:   workload.PodEnded(p),
		Terminating: p.DeletionTimestamp != nil,
		Unscheduled: p.Spec.NodeName == "",
	}
}

// ownerOf returns the topmost controller that can be derived from the pod alone:
// for the ReplicaSet of a Deployment, the Deployment.
func ownerOf(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	kind, name := owner.Kind, owner.Name
	if hash := p.Labels["pod-template-hash"]; hash != "" && kind == "ReplicaSet" {
		if of, made := strings.CutSuffix(name, "-"+hash); made {
			kind, name = "Deployment", of
		}
	}
	return kind + " " + p.Namespace + "/" + name
}
