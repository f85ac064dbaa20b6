package budget

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func creation(t *testing.T, namespace string, change func(*v1alpha1.PodUnavailableBudget)) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: namespace, Object: builder.Raw(t, newBudget("web", 0, change))}
}

func TestTheFirstBudgetLabelsItsNamespace(t *testing.T) {
	for _, tc := range []struct {
		namespace string
		dryRun    bool
		want      string
	}{
		{"ns", false, "true"},
		{"ns", true, ""},
		{"kube-system", false, ""},
	} {
		kube := kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tc.namespace}})
		req := creation(t, tc.namespace, nil)
		req.DryRun = new(tc.dryRun)
		if a := (ObjectHandler{kube.CoreV1().Namespaces()}).Admit(t.Context(), req); !a.Response.Allowed {
			t.Fatal(a.Response.Result.Message)
		}
		n, err := kube.CoreV1().Namespaces().Get(t.Context(), tc.namespace, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Labels[v1alpha1.HasBudgetLabel]; got != tc.want {
			t.Errorf("%s, dry run %v: %q", tc.namespace, tc.dryRun, got)
		}
	}
}

func TestAnAnnotationOfOpenKruiseWithoutEffectIsRejected(t *testing.T) {
	for annotation, want := range map[string]string{
		"kruise.io/pub-protect-operations":     "set spec.protectOperations: [DELETE,EVICT]",
		"pub.kruise.io/protect-total-replicas": "set spec.minAvailable to a number",
	} {
		req := creation(t, "ns", func(b *v1alpha1.PodUnavailableBudget) {
			b.Annotations = map[string]string{annotation: "DELETE,EVICT"}
		})
		a := ObjectHandler{kubefake.NewClientset().CoreV1().Namespaces()}.Admit(t.Context(), req)
		if message := a.Response.Result.Message; a.Response.Allowed || !strings.Contains(message, "metadata.annotations["+annotation+"]") || !strings.Contains(message, want) {
			t.Errorf("%s: %+v", annotation, a.Response.Result)
		}
	}
}

func TestAnInvalidSelectorIsRejectedWithItsField(t *testing.T) {
	for _, tc := range []struct {
		expression v1alpha1.PodSelectorRequirement
		want       string
	}{
		{v1alpha1.PodSelectorRequirement{Key: "app", Operator: "In", Value: "web"}, "spec.selector.matchExpressions[0].values"},
		{v1alpha1.PodSelectorRequirement{Key: "app", Operator: "In"}, "spec.selector.matchExpressions[0].values"},
		{v1alpha1.PodSelectorRequirement{Key: "app", Operator: "Exists", Values: []string{"web"}}, "spec.selector.matchExpressions[0].values"},
		{v1alpha1.PodSelectorRequirement{Key: "not a key", Operator: "Exists"}, "spec.selector.matchExpressions[0].key"},
		{v1alpha1.PodSelectorRequirement{Key: "app", Operator: "Like", Values: []string{"web"}}, "spec.selector.matchExpressions[0].operator"},
	} {
		req := creation(t, "ns", func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector.MatchExpressions = []v1alpha1.PodSelectorRequirement{tc.expression}
		})
		a := ObjectHandler{kubefake.NewClientset().CoreV1().Namespaces()}.Admit(t.Context(), req)
		if a.Response.Allowed || a.Response.Result.Code != 422 || !strings.Contains(a.Response.Result.Message, tc.want) {
			t.Errorf("%+v: %+v", tc.expression, a.Response.Result)
		}
	}
}

func TestOfKnativeServingOnlyAServiceCanBeTheTarget(t *testing.T) {
	for _, tc := range []struct {
		apiVersion, kind string
		allowed          bool
	}{
		{"serving.knative.dev/v1", "Service", true},
		{"serving.knative.dev", "Service", true},
		{"serving.knative.dev/v1", "Revision", false},
		{"serving.knative.dev/v1", "Configuration", false},
		{"serving.knative.dev", "Route", false},
		{"apps/v1", "Deployment", true},
	} {
		kube := kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		req := creation(t, "ns", func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "web"}
		})
		a := ObjectHandler{kube.CoreV1().Namespaces()}.Admit(t.Context(), req)
		if a.Response.Allowed != tc.allowed {
			t.Errorf("%+v: %+v", tc, a.Response.Result)
		}
		if !tc.allowed && (!strings.Contains(a.Response.Result.Message, "spec.targetRef.kind") || !strings.Contains(a.Response.Result.Message, "write kind: Service")) {
			t.Errorf("%+v: %s", tc, a.Response.Result.Message)
		}
	}
}

// The kind is compared exactly, and a budget that covers no pod becomes Guarding, too.
func TestAKindThatDoesNotBeginWithACapitalLetterIsWarnedAbout(t *testing.T) {
	for kind, want := range map[string]int{"Deployment": 0, "deployment": 1, "deployments": 1} {
		kube := kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		a := ObjectHandler{kube.CoreV1().Namespaces()}.Admit(t.Context(), creation(t, "ns", func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: kind, Name: "web"}
		}))
		if !a.Response.Allowed || len(a.Response.Warnings) != want {
			t.Errorf("%s: %+v", kind, a.Response)
		}
	}
}
