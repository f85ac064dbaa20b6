package budget

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

func TestTheOwnersOfPodsThatABudgetDoesNotSelectAreNotRead(t *testing.T) {
	objects := []runtime.Object{newPod(0, nil, nil)}
	for i := range 1000 {
		objects = append(objects, newPod(i+1, controlledBy("Deployment", fmt.Sprintf("other-%d", i)), func(p *corev1.Pod) { p.Labels = nil }))
	}
	w := newFixture(t, newBudget(nil), objects...)
	if status := w.reconcile(t); status.TotalReplicas != 1 {
		t.Errorf("total %d, want 1", status.TotalReplicas)
	}
	if n := len(w.owners.client.(*dynamicfake.FakeDynamicClient).Actions()); n != 0 {
		t.Errorf("%d owners are read, want 0", n)
	}
}
