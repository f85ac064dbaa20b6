package finalizer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

func over(name string, after time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(zero.Add(after))}}}
}

func bare(p *corev1.Pod) { p.Finalizers = nil }

func plain(p *corev1.Pod) { p.Finalizers, p.Spec.InitContainers = nil, nil }

func deleted(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(zero)) }

func forced(p *corev1.Pod) { deleted(p); p.DeletionGracePeriodSeconds = ptr.To(int64(0)) }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func statuses(all ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = all }
}

func TestDecide(t *testing.T) {
	sidecar := func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{running("sidecar")} }
	unscheduled := func(p *corev1.Pod) { p.Spec.NodeName = ""; p.Status = corev1.PodStatus{Phase: corev1.PodPending} }
	for name, tc := range map[string]struct {
		pod          *corev1.Pod
		gone, silent bool
		after        time.Duration
		want         Outcome
		ended        time.Duration
	}{
		"a new pod with the init container":                       {pod: pod(bare, phase(corev1.PodPending)), want: AddFinalizer},
		"a pod without it":                                        {pod: pod(plain), want: Nothing},
		"one that goes already":                                   {pod: pod(bare, deleted), want: Nothing},
		"one that has ended already":                              {pod: pod(bare, phase(corev1.PodFailed)), want: Nothing},
		"one that runs":                                           {pod: pod(), want: Nothing},
		"one whose only container ended and is restarted":         {pod: pod(statuses(over("app", 0))), want: Nothing},
		"a finished Job's, which nobody deletes":                  {pod: pod(phase(corev1.PodSucceeded), statuses(over("app", time.Second))), want: Revoke, ended: time.Second},
		"one that was evicted":                                    {pod: pod(phase(corev1.PodFailed)), want: Revoke, ended: -1},
		"one that drains":                                         {pod: pod(deleted), after: -time.Second, want: Wait},
		"one that drains for longer than it may":                  {pod: pod(deleted), after: time.Hour, want: Wait},
		"one that goes and has ended":                             {pod: pod(deleted, statuses(over("app", 2*time.Second))), want: Revoke, ended: 2 * time.Second},
		"one that goes and whose sidecar runs":                    {pod: pod(deleted, statuses(over("app", 0)), sidecar), want: Wait},
		"one that goes and of which a container is not heard of":  {pod: pod(deleted, statuses()), want: Wait},
		"one that never ran anywhere":                             {pod: pod(unscheduled, deleted), want: Revoke},
		"its node is gone, just now":                              {pod: pod(deleted), gone: true, silent: true, after: nodeLossGrace - 1, want: Wait},
		"its node is gone, and 30 s have passed":                  {pod: pod(deleted), gone: true, silent: true, after: nodeLossGrace, want: Revoke},
		"its node is gone, and nobody deletes it":                 {pod: pod(), gone: true, silent: true, after: time.Hour, want: Nothing},
		"its node is silent":                                      {pod: pod(deleted), silent: true, after: time.Hour, want: Wait},
		"its node is silent, and it is deleted by force":          {pod: pod(forced), silent: true, after: nodeLossGrace, want: Revoke},
		"deleted by force, and the kubelet still stops it":        {pod: pod(forced), after: time.Hour, want: Wait},
		"deleted by force, just now, on a silent node":            {pod: pod(forced), silent: true, after: time.Second, want: Wait},
		"deleted by force, and the kubelet says that it is ended": {pod: pod(forced, phase(corev1.PodFailed)), want: Revoke},
	} {
		t.Run(name, func(t *testing.T) {
			// What is cached has to say the same as the whole pod.
			trimmed, err := trimPod(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			for form, p := range map[string]*corev1.Pod{"whole": tc.pod, "trimmed": trimmed.(*corev1.Pod)} {
				now := zero.Add(tc.after)
				got := Decide(Input{Pod: p, NodeLost: tc.gone, NodeNotReady: tc.silent, Now: now})
				if got.Outcome != tc.want {
					t.Fatalf("%s: %s, want %s", form, got.Outcome, tc.want)
				}
				if tc.want == Wait && !got.RecheckAt.After(now) {
					t.Errorf("%s: to look again at %s", form, got.RecheckAt)
				}
				if tc.want == Revoke && tc.ended >= 0 && !got.Ended.Equal(zero.Add(tc.ended)) {
					t.Errorf("%s: ended %s, want %s", form, got.Ended.Sub(zero), tc.ended)
				}
			}
		})
	}
}

func TestWhatANodeSaysOfItsPods(t *testing.T) {
	node := func(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	for name, tc := range map[string]struct {
		node         *corev1.Node
		gone, silent bool
	}{
		"it is not there":              {nil, true, true},
		"it is ready":                  {node(corev1.ConditionTrue), false, false},
		"it is not":                    {node(corev1.ConditionUnknown), false, true},
		"somebody says that it is off": {node(corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeOutOfService}), true, true},
		"it is cordoned":               {node(corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodeUnschedulable}), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			gone, silent := nodeState(tc.node)
			if diff := cmp.Diff([]bool{tc.gone, tc.silent}, []bool{gone, silent}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
