package rollback

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podtrim "github.com/breakwater-dev/breakwater/reconciler/change/pod"
)

func TestFaultOfAPod(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{}, {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		node   string
		want   string
	}{
		"an image that cannot be pulled":     {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ImagePullBackOff")}, "n", "ImagePullBackOff"},
		"a crash loop, though it is Running": {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff")}, "n", "CrashLoopBackOff"},
		"no node":                            {corev1.PodStatus{Phase: corev1.PodPending}, "", "Unschedulable"},
		"nothing while it has scheduling gates": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}}, "", ""},
		"anything else before it runs":          {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ContainerCreating")}, "n", "Pending"},
		"an end":                                {corev1.PodStatus{Phase: corev1.PodFailed}, "n", "Failed"},
		"nothing when it runs and is not Ready": {corev1.PodStatus{Phase: corev1.PodRunning}, "n", ""},
		"nothing when it is Ready": {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff"),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, "n", ""},
		"an end, whatever its last condition says": {corev1.PodStatus{Phase: corev1.PodFailed,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, "n", "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := podOf(&corev1.Pod{Spec: corev1.PodSpec{NodeName: tc.node}, Status: tc.status})
			if got.Fault != tc.want {
				t.Errorf("got %q", got.Fault)
			}
		})
	}
}

// Kueue and Keptn gate pods until they have quota, or tasks before the deployment ended.
func TestAPodWithSchedulingGatesIsNotStuck(t *testing.T) {
	const gated = corev1.PodReasonSchedulingGated
	for name, tc := range map[string]struct {
		node      string
		scheduled corev1.PodCondition
		stuck     bool
	}{
		"its gates delay it":                       {"", corev1.PodCondition{Status: corev1.ConditionFalse, Reason: gated}, false},
		"it got its node a minute ago":             {"n", corev1.PodCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(time.Minute))}, false},
		"it got its node, which does not start it": {"n", corev1.PodCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(2 * time.Minute))}, true},
		"no node fits":                             {"", corev1.PodCondition{Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.scheduled.Type = corev1.PodScheduled
			cached, err := podtrim.Trim(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(ago(time.Hour))},
				Spec:       corev1.PodSpec{NodeName: tc.node},
				Status:     corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{tc.scheduled}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := underWay()
			s.Pods = []Pod{podOf(cached.(*corev1.Pod))}
			if got := Decide(s).Kind != ""; got != tc.stuck {
				t.Errorf("stuck: %v", got)
			}
		})
	}
}

// A release is not rolled back while its pods work through their init containers, such as a migration or
// the wait for a permission.
func TestAPodWithInitContainersIsStuckOnlyIfOneFails(t *testing.T) {
	type status = corev1.ContainerStatus
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(since time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(ago(since))}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	sidecar := status{State: runs, Ready: true}
	for name, tc := range map[string]struct {
		init  []status
		app   string
		stuck bool
		// runs: the pod is Running, and so is its app container.
		runs bool
	}{
		"no status yet":                                  {stuck: true},
		"no init container has started":                  {init: []status{{State: waits("PodInitializing")}}, stuck: true},
		"the first one runs":                             {init: []status{{State: runs}, {State: waits("PodInitializing")}}},
		"the second one runs":                            {init: []status{{State: ended(time.Minute), Ready: true}, {State: runs}}},
		"one runs beside a sidecar":                      {init: []status{sidecar, {State: runs}}},
		"a sidecar has not started yet":                  {init: []status{{State: runs}}},
		"one runs again after a failure":                 {init: []status{{State: runs, RestartCount: 1, LastTerminationState: ended(time.Minute)}}},
		"the last one ended a minute ago":                {init: []status{{State: ended(time.Minute), Ready: true}}, app: "PodInitializing"},
		"the last one ended longer ago":                  {init: []status{{State: ended(2 * time.Minute), Ready: true}}, app: "PodInitializing", stuck: true},
		"the image of the second one is not pulled yet":  {init: []status{{State: ended(time.Minute), Ready: true}, {State: waits("ErrImagePull")}}},
		"the image of the only one cannot be pulled":     {init: []status{{State: waits("ImagePullBackOff")}}, stuck: true},
		"one failed for the first time a minute ago":     {init: []status{{State: waits("CrashLoopBackOff"), RestartCount: 1, LastTerminationState: ended(time.Minute)}}},
		"one is in a crash loop":                         {init: []status{{State: waits("CrashLoopBackOff"), RestartCount: 3, LastTerminationState: ended(time.Second)}}, stuck: true},
		"one that succeeded had been in a crash loop":    {init: []status{{State: ended(time.Minute), Ready: true, RestartCount: 3}}, app: "PodInitializing"},
		"a sidecar runs, and the containers never start": {init: []status{sidecar}, app: "PodInitializing", stuck: true},
		"a sidecar of running containers starts slowly":  {init: []status{{State: runs}}, runs: true},
		"a sidecar of running containers failed once":    {init: []status{{State: waits("CrashLoopBackOff"), RestartCount: 1, LastTerminationState: ended(time.Minute)}}, runs: true},
		"a sidecar of running containers crashes":        {init: []status{{State: waits("CrashLoopBackOff"), RestartCount: 3, LastTerminationState: ended(time.Second)}}, runs: true, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(ago(3 * time.Minute))},
				Spec:       corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: tc.init,
					ContainerStatuses: []status{{State: waits(tc.app)}},
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(ago(3 * time.Minute))}}},
			}
			if tc.runs {
				p.Status.Phase, p.Status.ContainerStatuses[0] = corev1.PodRunning, status{State: runs, Ready: true}
			}
			cached, err := podtrim.Trim(p)
			if err != nil {
				t.Fatal(err)
			}
			in := underWay()
			in.Pods = []Pod{podOf(cached.(*corev1.Pod))}
			if got := Decide(in).Kind != ""; got != tc.stuck {
				t.Errorf("stuck: %v", got)
			}
		})
	}
}
