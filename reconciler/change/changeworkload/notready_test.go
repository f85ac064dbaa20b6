package changeworkload

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

// A DaemonSet on nodes n1 to nN; each node has pod p<n>.
func TestADaemonSetDoesNotWaitForNodesThatAreNotReady(t *testing.T) {
	const success, running = v1alpha1.ReleaseSuccess, v1alpha1.ReleaseRunning
	for name, tc := range map[string]struct {
		nodes                 int32
		notReady              string // digits of nodes
		notTolerated          string // digits of these nodes that the controller does not count
		old, unready, waiting string // digits of pods: not of the release, not Ready, in a batch without a verdict
		want                  v1alpha1.ReleasePhase
		rolledOut             int32 // while Running
	}{
		"all nodes are Ready":                                                  {nodes: 4, want: success},
		"a pod is not Ready, and its node is":                                  {nodes: 4, unready: "4", want: running},
		"a node is not Ready after its update":                                 {nodes: 4, notReady: "4", unready: "4", want: success},
		"a node is not Ready before its update":                                {nodes: 4, notReady: "4", unready: "4", old: "4", want: success},
		"half of the nodes are not Ready":                                      {nodes: 4, notReady: "34", unready: "34", old: "3", want: success},
		"more than half of the nodes are not Ready":                            {nodes: 4, notReady: "234", unready: "234", want: running},
		"the only node is not Ready":                                           {nodes: 1, notReady: "1", unready: "1", want: running},
		"a node is not Ready, another has the old version":                     {nodes: 4, notReady: "4", unready: "4", old: "34", want: running},
		"a node is not Ready, another pod is not Ready":                        {nodes: 4, notReady: "4", unready: "34", want: running},
		"a node is not Ready, another pod waits for its verdict":               {nodes: 4, notReady: "4", unready: "4", waiting: "3", want: running, rolledOut: 3},
		"a node that is not Ready is not counted, a pod waits for its verdict": {nodes: 4, notReady: "4", notTolerated: "4", unready: "4", waiting: "3", want: running, rolledOut: 3},
		"a node that is not Ready is not counted":                              {nodes: 4, notReady: "4", notTolerated: "4", unready: "4", want: success},
		"a node that is not Ready is not counted, another has the old version": {nodes: 4, notReady: "4", notTolerated: "4", unready: "4", old: "34", want: running},
		"two nodes are not counted, and one of them is Ready again":            {nodes: 5, notReady: "5", notTolerated: "45", unready: "45", waiting: "3", want: running},
		"two nodes that are not Ready are not counted":                         {nodes: 4, notReady: "34", notTolerated: "34", unready: "34", want: success},
		"the pod of a node that is not Ready is still Ready":                   {nodes: 4, notReady: "4", old: "4", want: running},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
				Name: "a", Labels: map[string]string{v1alpha1.VersionKey: "v"}, Annotations: map[string]string{v1alpha1.AttemptAnnotation: "2"},
			}}
			counts := &d.Status
			in := release(0)
			var all []*corev1.Pod
			for i := int32(1); i <= tc.nodes; i++ {
				p := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: summary(int(i)).Pod, UID: summary(int(i)).UID},
					Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("n%d", i)},
				}
				counted := !has(tc.notTolerated, i)
				if counted {
					counts.DesiredNumberScheduled++
					counts.CurrentNumberScheduled++
				} else {
					counts.NumberMisscheduled++
					p.Spec = corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
							Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{p.Spec.NodeName},
						}}}},
					}}}}
				}
				if !has(tc.unready, i) {
					counts.NumberAvailable++
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0)}}
				}
				if !has(tc.old, i) {
					if counted {
						counts.UpdatedNumberScheduled++
					}
					in.Pods = append(in.Pods, podOf(p, in.ChangeWorkload, &workload.Workload{Kind: workload.DaemonSet}))
					if has(tc.waiting, i) {
						judged(int(i), "")(&in)
					} else if !has(tc.unready, i) {
						judged(int(i), "pass")(&in)
					}
				}
				all = append(all, p)
			}
			w := workloadinformertest.Workload(t, workload.DaemonSet, d)
			in.ExcludedNodes = excludeNotReadyNodes(w, all, in.Pods, func(node string) bool { return has(tc.notReady, lastDigit(node)) })
			in.Workload = workloadOf(w, in.ExcludedNodes)
			got := Decide(in)
			if got.Phase != tc.want {
				t.Errorf("%s (%s: %s), want %s; excluded %+v", got.Phase, got.Reason, got.Detail, tc.want, in.ExcludedNodes)
			}
			if got.Phase == running && got.RolledOutPods != tc.rolledOut {
				t.Errorf("%d pods are rolled out, want %d", got.RolledOutPods, tc.rolledOut)
			}
		})
	}
}

// The DaemonSet controller counts the oldest pod of a node, as while it replaces a pod.
func TestTheOldestPodOfANodeThatIsNotReadyCounts(t *testing.T) {
	pod := func(n int, age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: summary(n).UID, CreationTimestamp: metav1.NewTime(t0.Add(-age))}, Spec: corev1.PodSpec{NodeName: "n"}}
	}
	own := []Pod{{PodSummary: summary(2)}}
	w := workloadinformertest.Workload(t, workload.DaemonSet, &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 4}})
	got := excludeNotReadyNodes(w, []*corev1.Pod{pod(2, 0), pod(1, time.Hour)}, own, func(string) bool { return true })
	if want := (workload.ExcludedNodes{Nodes: 1}); got != want || own[0].OnNotReadyNode {
		t.Errorf("%+v, want %+v; the pod is marked: %t", got, want, own[0].OnNotReadyNode)
	}
}

// has reports whether digits has n.
func has(digits string, n int32) bool {
	for _, d := range digits {
		if d-'0' == n {
			return true
		}
	}
	return false
}

// lastDigit is the number of a node.
func lastDigit(node string) int32 { return int32(node[len(node)-1] - '0') }
