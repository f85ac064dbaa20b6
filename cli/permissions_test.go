package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestAPodThatNeedsPermissionsIsListedWithoutACondition(t *testing.T) {
	required := map[string]string{podmeta.Label: podmeta.LabelRequired}
	granted := corev1.PodCondition{Type: podmeta.ConditionAuthorized, Status: "True", Reason: podmeta.ReasonPermissionGranted}
	missing := corev1.PodCondition{Type: podmeta.ConditionInjected, Status: "False", Reason: "PermissionNotInjected"}
	for name, tc := range map[string]struct {
		labels         map[string]string
		conditions     []corev1.PodCondition
		status, reason string // none if the pod is not listed
	}{
		"no condition":              {required, nil, "Unknown", diagnosis.ReasonNotReported},
		"no need":                   {nil, nil, "", ""},
		"granted":                   {required, []corev1.PodCondition{granted}, "True", podmeta.ReasonPermissionGranted},
		"no init container":         {nil, []corev1.PodCondition{missing}, "False", "PermissionNotInjected"},
		"granted, but not injected": {required, []corev1.PodCondition{granted, missing}, "False", "PermissionNotInjected"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := permissionOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: tc.conditions}})
			if ok != (tc.reason != "") || ok && (got.Status != tc.status || got.Reason != tc.reason) {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}
