package budget

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// The controllers of a cluster may all be user system:kube-controller-manager.
func TestTheTerminationOfANamespaceIsAllowedWhoeverDeletes(t *testing.T) {
	now := metav1.Now()
	namespace := func(deleted *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: deleted, Finalizers: []string{"kubernetes"}}}
	}
	for name, tc := range map[string]struct {
		cached, stored *corev1.Namespace
		req            func(*testing.T) *admissionv1.AdmissionRequest
		want           string
	}{
		"a terminating namespace":                {namespace(&now), namespace(&now), nil, DecisionNamespaceTerminating},
		"a deleted namespace":                    {namespace(&now), nil, nil, DecisionNamespaceTerminating},
		"a namespace that was created again":     {namespace(&now), namespace(nil), nil, DecisionDenied},
		"an active namespace":                    {namespace(nil), namespace(nil), nil, DecisionDenied},
		"a namespace that is not in the cache":   {nil, namespace(&now), nil, DecisionDenied},
		"an eviction in a terminating namespace": {namespace(&now), namespace(&now), func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, nil) }, DecisionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{newPod(nil)}
			if tc.cached != nil {
				objects = append(objects, tc.cached)
			}
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, objects...)
			stored := kubefake.NewClientset()
			fx.guard.Namespaces.Client = stored.CoreV1()
			if tc.stored != nil {
				if err := stored.Tracker().Add(tc.stored); err != nil {
					t.Fatal(err)
				}
			}
			req := deletion(t, newPod(nil))
			if tc.req != nil {
				req = tc.req(t)
			}
			req.UserInfo.Username = "system:kube-controller-manager"
			if got := fx.ask(t, req); got.Decision != tc.want || got.Response.Allowed != (tc.want != DecisionDenied) {
				t.Errorf("%s, allowed %t: %v", got.Decision, got.Response.Allowed, got.Response.Result)
			}
			if s := fx.budget(t, "web").Status; len(s.DeletedPods) > 0 {
				t.Errorf("charged %v", s.DeletedPods)
			}
		})
	}
}
