package deletion

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The deletion that the label prevents would open the breaker of the cluster.
func TestADeletionOfANamespaceThatCascadingProtectionDeniesIsNotCounted(t *testing.T) {
	cascading := map[string]string{v1alpha1.DeleteProtectionLabel: v1alpha1.ProtectCascading}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		// disabled reports that the webhook of cascading deletion is not asked.
		disabled bool
		want     string
	}{
		"without a label":              {nil, nil, false, deletionflow.DecisionCounted},
		"protected":                    {cascading, nil, false, DecisionCascadingProtection},
		"protected by the first label": {map[string]string{v1alpha1.DisableCascadingDeletionLabel: "true"}, nil, false, DecisionCascadingProtection},
		"protected, in shadow mode":    {cascading, map[string]string{v1alpha1.ShadowAnnotation: "true"}, false, deletionflow.DecisionCounted},
		"protected by nobody":          {cascading, nil, true, deletionflow.DecisionCounted},
	} {
		t.Run(name, func(t *testing.T) {
			h := NamespaceHandler{FlowControl: &answering{answer: allowing}, CascadingDenies: func() bool { return !tc.disabled }}
			a := h.Admit(t.Context(), &admissionv1.AdmissionRequest{
				Operation: admissionv1.Delete, Name: "shop", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
				OldObject: builder.Raw(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: tc.labels, Annotations: tc.annotations}}),
			})
			if a.Decision != tc.want || !a.Response.Allowed {
				t.Errorf("%+v", a)
			}
		})
	}
}
