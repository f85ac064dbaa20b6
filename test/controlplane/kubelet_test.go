package controlplane

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestAStatusThatIsNotWrittenForNowIsNoError(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		answer error
		fails  bool
	}{
		"conflict":                  {apierrs.NewConflict(pods, "web", nil), false},
		"a webhook does not answer": {apierrs.NewInternalError(errors.New("failed calling webhook")), false},
		"too many requests":         {apierrs.NewTooManyRequests("", 1), false},
		"the server timed out":      {apierrs.NewServerTimeout(pods, "update", 1), false},
		"a request timed out":       {apierrs.NewTimeoutError("", 1), false},
		"denied":                    {apierrs.NewForbidden(pods, "web", errors.New("denied")), true},
	} {
		kube := fake.NewClientset(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady}}},
		})
		kube.PrependReactor("update", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.answer })
		if err := syncPods(t.Context(), kube, "default"); (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
