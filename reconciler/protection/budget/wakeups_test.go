package budget

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// targeting returns a budget whose target is a Deployment of its name.
func targeting(name string) *v1alpha1.PodUnavailableBudget {
	return newBudget(func(b *v1alpha1.PodUnavailableBudget) {
		b.Name, b.Spec.Selector = name, nil
		b.Spec.TargetRef = &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	})
}

func selecting(name string, selector v1alpha1.PodSelector) *v1alpha1.PodUnavailableBudget {
	return newBudget(func(b *v1alpha1.PodUnavailableBudget) { b.Name, b.Spec.Selector = name, &selector })
}

// thousandBudgets returns 1,000 budgets with other targets, 1,000 with other
// selectors, and five that a pod of Deployment web may have.
func thousandBudgets(t *testing.T) cache.Indexer {
	t.Helper()
	all := []*v1alpha1.PodUnavailableBudget{
		targeting("web"),
		selecting("web-by-label", v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}}),
		selecting("web-of-release", v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web", "release": "1"}}),
		selecting("web-by-expression", v1alpha1.PodSelector{MatchExpressions: []v1alpha1.PodSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}),
		selecting("all", v1alpha1.PodSelector{}),
	}
	for i := range 1000 {
		name := fmt.Sprintf("app-%d", i)
		all = append(all, targeting(name), selecting("of-"+name, v1alpha1.PodSelector{MatchLabels: map[string]string{"app": name}}))
	}
	other := targeting("web")
	other.Namespace = "other"
	index := newNamespaceIndexer()
	if err := index.AddIndexers(podIndexers); err != nil {
		t.Fatal(err)
	}
	for _, b := range append(all, other) {
		if err := index.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	return index
}

func TestAPodEventEnqueuesTheBudgetsThatMayCoverIt(t *testing.T) {
	budgets := thousandBudgets(t)
	w := newFixture(t, newBudget(nil), application(1, 1, 0)...)
	for name, tc := range map[string]struct {
		owner  []metav1.OwnerReference
		labels map[string]string
		want   []string
		// targets is how many budgets with a target are enqueued beside want.
		targets int
	}{
		"a pod of a Deployment": {controlledBy("ReplicaSet", "web-1"), map[string]string{"app": "web", "zone": "a"},
			[]string{"all", "web", "web-by-expression", "web-by-label"}, 0},
		"a pod of a release": {controlledBy("ReplicaSet", "web-1"), map[string]string{"app": "web", "release": "1"},
			[]string{"all", "web", "web-by-expression", "web-by-label", "web-of-release"}, 0},
		"a pod without an owner": {nil, map[string]string{"app": "web"}, []string{"all", "web-by-expression", "web-by-label"}, 0},
		"a pod without labels":   {controlledBy("ReplicaSet", "web-1"), nil, []string{"all", "web"}, 0},
		// Its owner may be new, or of a kind that is not watched.
		"a pod whose owner is not cached": {controlledBy("ReplicaSet", "new"), nil, []string{"all", "web"}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(0, tc.owner, func(p *corev1.Pod) { p.Labels = tc.labels })
			var got []string
			targets := 0
			for _, b := range (wakeUps{budgets: budgets, owners: w.owners}).covering(p) {
				if b.Spec.TargetRef != nil && b.Name != "web" {
					targets++
					continue
				}
				got = append(got, b.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) || targets != tc.targets {
				t.Errorf("got %v and %d targets, want %v and %d", got, targets, tc.want, tc.targets)
			}
		})
	}
}
