package rollback

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTroubleOfAPod(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{}, {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		node   string
		want   string
	}{
		"an image that cannot be pulled":        {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ImagePullBackOff")}, "n", "ImagePullBackOff"},
		"a crash loop, though it is Running":    {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff")}, "n", "CrashLoopBackOff"},
		"no node":                               {corev1.PodStatus{Phase: corev1.PodPending}, "", "Unschedulable"},
		"anything else before it runs":          {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ContainerCreating")}, "n", "Pending"},
		"an end":                                {corev1.PodStatus{Phase: corev1.PodFailed}, "n", "Failed"},
		"nothing when it runs and is not Ready": {corev1.PodStatus{Phase: corev1.PodRunning}, "n", ""},
		"nothing when it is Ready": {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff"),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, "n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := podOf(&corev1.Pod{Spec: corev1.PodSpec{NodeName: tc.node}, Status: tc.status})
			if got.Fault != tc.want {
				t.Errorf("got %q", got.Fault)
			}
		})
	}
}
