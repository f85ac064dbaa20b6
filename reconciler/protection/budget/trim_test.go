package budget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// The webhook computes the effects of a change from whole pods, and the controller
// compares them with pods of its cache.
func TestATrimmedPodHasTheFieldsThatChargesAreComparedWith(t *testing.T) {
	at := func(image, memory, id string) *corev1.Pod {
		return newPod(1, nil, func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{
				ActiveDeadlineSeconds: new(int64(60)), ServiceAccountName: "web",
				InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
				Containers: []corev1.Container{{Name: "web", Image: image, Args: []string{"serve"},
					Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}},
					ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}}},
			}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: id, Image: image}}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "no room"})
		})
	}
	trim := func(p *corev1.Pod) *corev1.Pod {
		trimmed, err := trimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		return trimmed.(*corev1.Pod)
	}
	before := at("web:1", "1Gi", "1")
	if trim(before).Spec.ServiceAccountName != "" || trim(before).Spec.Containers[0].Args != nil {
		t.Error("the pod is not trimmed")
	}
	resizedPod := at("web:1", "1Gi", "1")
	resizedPod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}
	for name, after := range map[string]*corev1.Pod{
		"a resize of the pod": resizedPod,
		"an image":            at("web:2", "1Gi", "1"), "a resize": at("web:1", "2Gi", "1"), "replaced": at("web:2", "2Gi", "2"), "nothing": before,
	} {
		effects := budget.EffectsOf(before, after)
		if diff := cmp.Diff(effects, budget.EffectsOf(trim(before), trim(after))); diff != "" {
			t.Errorf("%s: effects: %s", name, diff)
		}
		derive := func(p *corev1.Pod) budget.Derivation {
			b := newBudget(nil)
			b.Status.UnavailablePods = map[string]string{p.Name: budget.Entry{ResourceVersion: "101", UID: p.UID, Token: "7", Effects: effects}.String()}
			never := func(string) bool { return false }
			return budget.Derive(b, budget.Observed{Pods: []*corev1.Pod{p}, Total: 1, Expired: never, KeepSettled: never, ExistsUncovered: func(types.UID) bool { return false }})
		}
		if diff := cmp.Diff(derive(after), derive(trim(after))); diff != "" {
			t.Errorf("%s: derivation: %s", name, diff)
		}
	}
	if trimmed := trim(newPod(1, nil, func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}} })); trimmed.ManagedFields != nil {
		t.Error("managedFields are kept")
	}
}

func TestATrimmedDeploymentOfAKnativeServiceIsKnownAsSuch(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web-00001-deployment", Labels: map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "u"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", Controller: new(true)}},
	}}
	for _, want := range []bool{true, false} {
		trimmed, err := trimOwner(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := workload.KnativeServiceOf(trimmed.(*appsv1.Deployment)); ok != want {
			t.Errorf("owned by %v: %t, want %t", d.OwnerReferences, ok, want)
		}
		d.OwnerReferences = nil
	}
}
