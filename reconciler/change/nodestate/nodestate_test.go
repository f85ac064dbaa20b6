package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestANodeIsNotReadyIfItExistsAndItsConditionIsNotTrue(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"Ready":                  {[]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: "True"}, {Type: corev1.NodeReady, Status: "True"}}, false},
		"NotReady":               {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: "False"}}, true},
		"the kubelet is silent":  {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: "Unknown"}}, true},
		"a node without a state": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			trimmed, err := Trim(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: tc.conditions}})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Add(trimmed); err != nil {
				t.Fatal(err)
			}
			nodes := Nodes{corelisters.NewNodeLister(all)}
			if got := nodes.NotReady("n"); got != tc.want {
				t.Errorf("not Ready: %t, want %t", got, tc.want)
			}
			if nodes.NotReady("deleted") || nodes.NotReady("") {
				t.Error("a node that does not exist is not Ready")
			}
		})
	}
}
