package budget

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
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

// A user can edit the references of a pod. The other pods of its controller count as before.
func TestAPodWithAnEditedReferenceDoesNotChangeTheOwnersOfOthers(t *testing.T) {
	w := newFixture(t, newBudget(nil), application(3, 3, 3)...)
	for name, edit := range map[string]func(*metav1.OwnerReference){
		"another name": func(ref *metav1.OwnerReference) { ref.Name = "gone" },
		"another kind": func(ref *metav1.OwnerReference) { ref.Kind = "StatefulSet" },
	} {
		refs := controlledBy("ReplicaSet", "web-1")
		edit(&refs[0])
		edited, sibling := newPod(9, refs, nil), newPod(0, controlledBy("ReplicaSet", "web-1"), nil)
		for _, order := range [][]*corev1.Pod{{edited, sibling}, {sibling, edited}} {
			tally := newOwnerTally(t.Context(), w.owners, "ns")
			for _, p := range order {
				c, err := tally.chain(p)
				if err != nil || c.above.TopmostTerminatingOrGone() != (p == edited) {
					t.Errorf("%s, %s first: %s has owners %+v, %v", name, order[0].Name, p.Name, c.above, err)
				}
				tally.count(p, c.owners)
			}
		}
	}
}

// BenchmarkGather reads one of a thousand budgets in a namespace of 10,000 pods.
func BenchmarkGather(b *testing.B) {
	var objects []runtime.Object
	for i := range 1000 {
		name := fmt.Sprintf("app-%d", i)
		objects = append(objects, deploymentOf(name), replicaSetOf(name))
		for range 10 {
			objects = append(objects, newPod(len(objects), controlledBy("ReplicaSet", name+"-1"), nil))
		}
	}
	target := targeting("app-7")
	w := newFixture(b, target, objects...)
	scope, err := budget.ScopeOf(target)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if observed, _, err := w.gather(b.Context(), target, scope); err != nil || observed.Total != 10 || len(observed.Pods) != 10 {
			b.Fatal(observed.Total, len(observed.Pods), err)
		}
	}
}

func TestOnlyOwnersThatAreNotWatchedAreReadEveryTenSeconds(t *testing.T) {
	custom := newPod(9, []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Game", Name: "web", UID: "uid", Controller: ptr.To(true)}}, nil)
	targetOf := func(kind string) func(*v1alpha1.PodUnavailableBudget) {
		return func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: kind, Name: "web"}
		}
	}
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.PodUnavailableBudget)
		objects []runtime.Object
		want    time.Duration
	}{
		"a Deployment":               {nil, application(3, 3, 3), watchedResync},
		"pods without an owner":      {nil, []runtime.Object{newPod(0, nil, nil)}, watchedResync},
		"no pods":                    {nil, nil, watchedResync},
		"a Deployment as the target": {targetOf("Deployment"), application(3, 3, 0), watchedResync},
		"another kind":               {nil, append(application(3, 3, 3), custom), resync},
		"another kind as the target": {targetOf("CloneSet"), nil, resync},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newBudget(tc.change), tc.objects...)
			again, wait := controller.IsRequeueKey(w.ReconcileKind(t.Context(), w.live(t)))
			if !again || wait != tc.want {
				t.Errorf("reconciled again %t after %s, want %s", again, wait, tc.want)
			}
		})
	}
}
