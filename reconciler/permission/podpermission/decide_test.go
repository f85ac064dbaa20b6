package podpermission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

var zero = time.Unix(1<<30, 0).UTC()

func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid", Finalizers: []string{podmeta.Finalizer},
			Labels: map[string]string{podmeta.Label: podmeta.LabelRequired}},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app"}},
			InitContainers: []corev1.Container{{Name: protocol.ContainerName, Env: []corev1.EnvVar{{Name: protocol.EnvSets, Value: "orders"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, ContainerStatuses: []corev1.ContainerStatus{running("app")}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func terminated(name string, after time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(zero.Add(after))}}}
}

func withoutFinalizer(p *corev1.Pod) { p.Finalizers = nil }

func withoutInitContainer(p *corev1.Pod) { p.Finalizers, p.Spec.InitContainers = nil, nil }

func deleted(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(zero)) }

func forced(p *corev1.Pod) { deleted(p); p.DeletionGracePeriodSeconds = new(int64(0)) }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func statuses(all ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = all }
}

func TestDecide(t *testing.T) {
	sidecar := func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{running("sidecar")} }
	debugger := func(state corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{state} }
	}
	twoContainers := func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"}) }
	unscheduled := func(p *corev1.Pod) { p.Spec.NodeName = ""; p.Status = corev1.PodStatus{Phase: corev1.PodPending} }
	for name, tc := range map[string]struct {
		pod            *corev1.Pod
		gone, notReady bool
		after          time.Duration
		want           Action
		ended          time.Duration
	}{
		"a new pod with the init container":                       {pod: pod(withoutFinalizer, phase(corev1.PodPending)), want: AddFinalizer},
		"a pod without the init container":                        {pod: pod(withoutInitContainer), want: Nothing},
		"a terminating pod without the finalizer":                 {pod: pod(withoutFinalizer, deleted), want: Nothing},
		"a completed pod without the finalizer":                   {pod: pod(withoutFinalizer, phase(corev1.PodFailed)), want: Nothing},
		"a running pod":                                           {pod: pod(), want: Nothing},
		"a pod whose container ended and restarts":                {pod: pod(statuses(terminated("app", 0))), want: Nothing},
		"a completed pod that is not deleted":                     {pod: pod(phase(corev1.PodSucceeded), statuses(terminated("app", time.Second))), want: Revoke, ended: time.Second},
		"an evicted pod":                                          {pod: pod(phase(corev1.PodFailed)), want: Revoke, ended: -1},
		"a draining pod":                                          {pod: pod(deleted), after: -time.Second, want: Wait},
		"a draining pod beyond its grace period":                  {pod: pod(deleted), after: time.Hour, want: Wait},
		"a terminating pod whose containers ended":                {pod: pod(deleted, statuses(terminated("app", 2*time.Second))), want: Revoke, ended: 2 * time.Second},
		"a terminating pod with a running sidecar":                {pod: pod(deleted, statuses(terminated("app", 0)), sidecar), want: Wait},
		"a terminating pod with a running ephemeral container":    {pod: pod(deleted, statuses(terminated("app", 0)), debugger(running("debugger"))), want: Wait},
		"a terminating pod whose ephemeral container ended last":  {pod: pod(deleted, statuses(terminated("app", 0)), debugger(terminated("debugger", time.Second))), want: Revoke, ended: time.Second},
		"a terminating pod, one of two containers ended":          {pod: pod(deleted, twoContainers, statuses(terminated("app", 0), running("proxy"))), want: Wait},
		"a terminating pod, the other container ended":            {pod: pod(deleted, twoContainers, statuses(running("app"), terminated("proxy", 0))), want: Wait},
		"a terminating pod, one of two containers has no status":  {pod: pod(deleted, twoContainers, statuses(terminated("app", 0))), want: Wait},
		"a terminating pod, both containers ended":                {pod: pod(deleted, twoContainers, statuses(terminated("app", time.Second), terminated("proxy", 5*time.Second))), want: Revoke, ended: 5 * time.Second},
		"a terminating pod without container statuses":            {pod: pod(deleted, statuses()), want: Wait},
		"a terminating pod without a node":                        {pod: pod(unscheduled, deleted), want: Revoke},
		"the node is gone, within the grace":                      {pod: pod(deleted), gone: true, notReady: true, after: nodeGoneGrace - 1, want: Wait},
		"the node is gone, after the grace":                       {pod: pod(deleted), gone: true, notReady: true, after: nodeGoneGrace, want: Revoke},
		"the node is gone, the pod is not deleted":                {pod: pod(), gone: true, notReady: true, after: time.Hour, want: Nothing},
		"the node is not ready":                                   {pod: pod(deleted), notReady: true, after: time.Hour, want: Wait},
		"forced deletion, the node is not ready":                  {pod: pod(forced), notReady: true, after: nodeGoneGrace, want: Revoke},
		"forced deletion, the kubelet still stops the pod":        {pod: pod(forced), after: time.Hour, want: Wait},
		"forced deletion within the grace, the node is not ready": {pod: pod(forced), notReady: true, after: time.Second, want: Wait},
		"forced deletion, the kubelet reports the end":            {pod: pod(forced, phase(corev1.PodFailed)), want: Revoke},
	} {
		t.Run(name, func(t *testing.T) {
			// The trimmed pod must give the same result as the whole pod.
			trimmed, err := trimPod(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			for form, p := range map[string]*corev1.Pod{"whole": tc.pod, "trimmed": trimmed.(*corev1.Pod)} {
				now := zero.Add(tc.after)
				got := Decide(Input{Pod: p, NodeGone: tc.gone, NodeNotReady: tc.notReady, Now: now})
				if got.Action != tc.want {
					t.Fatalf("%s: %s, want %s", form, got.Action, tc.want)
				}
				if tc.want == Wait && !got.RecheckAt.After(now) {
					t.Errorf("%s: recheck at %s", form, got.RecheckAt)
				}
				if tc.want == Revoke && tc.ended >= 0 && !got.Ended.Equal(zero.Add(tc.ended)) {
					t.Errorf("%s: ended %s, want %s", form, got.Ended.Sub(zero), tc.ended)
				}
			}
		})
	}
}

func TestNodeState(t *testing.T) {
	node := func(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	for name, tc := range map[string]struct {
		node           *corev1.Node
		gone, notReady bool
	}{
		"the node does not exist": {nil, true, true},
		"ready":                   {node(corev1.ConditionTrue), false, false},
		"not ready":               {node(corev1.ConditionUnknown), false, true},
		"out of service":          {node(corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeOutOfService}), true, true},
		"cordoned":                {node(corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodeUnschedulable}), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			gone, notReady := nodeState(tc.node)
			if diff := cmp.Diff([]bool{tc.gone, tc.notReady}, []bool{gone, notReady}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
