package budget

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	return budgetIndex(t, append(all, other))
}

func budgetIndex(t *testing.T, budgets []*v1alpha1.PodUnavailableBudget) cache.Indexer {
	t.Helper()
	index := newNamespaceIndexer()
	if err := index.AddIndexers(podIndexers); err != nil {
		t.Fatal(err)
	}
	for _, b := range budgets {
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
			for _, b := range (affectedBudgets{budgets: budgets, owners: w.owners}).covering(p) {
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

func TestAWorkloadEnqueuesBudgetsOnlyIfTheyNeedWhatChanges(t *testing.T) {
	now := metav1.Now()
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid", ResourceVersion: "1"}
	deployment := func(change func(*appsv1.Deployment)) any {
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}}
		change(d)
		return d
	}
	replicaSet := func(change func(*appsv1.ReplicaSet)) any {
		s := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(3))}}
		change(s)
		return s
	}
	statefulSet := func(replicas, ready int32) any {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}, Status: appsv1.StatefulSetStatus{ReadyReplicas: ready}}
	}
	daemonSet := func(desired, ready int32) any {
		return &appsv1.DaemonSet{ObjectMeta: meta, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: desired, NumberReady: ready}}
	}
	aDeployment, aReplicaSet := deployment(func(*appsv1.Deployment) {}), replicaSet(func(*appsv1.ReplicaSet) {})
	for name, tc := range map[string]struct {
		before, after any
		want          int
	}{
		"a resync":                    {aDeployment, aDeployment, 0},
		"the status of a Deployment":  {aDeployment, deployment(func(d *appsv1.Deployment) { d.ResourceVersion, d.Status.ReadyReplicas = "2", 2 }), 0},
		"a scaled Deployment":         {aDeployment, deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) }), 2},
		"another label of its pods":   {aDeployment, deployment(func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"app": "web"} }), 2},
		"a terminating Deployment":    {aDeployment, deployment(func(d *appsv1.Deployment) { d.DeletionTimestamp = &now }), 2},
		"another of the same name":    {aDeployment, deployment(func(d *appsv1.Deployment) { d.UID = "other" }), 2},
		"the status of a ReplicaSet":  {aReplicaSet, replicaSet(func(s *appsv1.ReplicaSet) { s.ResourceVersion, s.Status.ReadyReplicas = "2", 2 }), 0},
		"a scaled ReplicaSet":         {aReplicaSet, replicaSet(func(s *appsv1.ReplicaSet) { s.Spec.Replicas = new(int32(0)) }), 2},
		"an adopted ReplicaSet":       {aReplicaSet, replicaSet(func(s *appsv1.ReplicaSet) { s.OwnerReferences = controlledBy("Deployment", "web") }), 2},
		"the status of a StatefulSet": {statefulSet(3, 1), statefulSet(3, 2), 0},
		"a scaled StatefulSet":        {statefulSet(3, 1), statefulSet(2, 1), 2},
		"a ready pod of a DaemonSet":  {daemonSet(3, 1), daemonSet(3, 2), 0},
		"another node of a DaemonSet": {daemonSet(3, 1), daemonSet(4, 1), 2},
		"a new Deployment":            {nil, aDeployment, 1},
		"a deleted Deployment":        {aDeployment, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			handler := ofWorkload(func(workload owner, namespace string) {
				if workload.name != "web" || namespace != "ns" {
					t.Errorf("workload %q in namespace %q", workload.name, namespace)
				}
				got++
			})
			switch {
			case tc.before == nil:
				handler.OnAdd(tc.after, false)
			case tc.after == nil:
				handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/web", Obj: tc.before})
			default:
				handler.OnUpdate(tc.before, tc.after)
			}
			if got != tc.want { // an update passes on the workload as it was and as it is
				t.Errorf("passed on %d times, want %d", got, tc.want)
			}
		})
	}
}

// A namespace has a thousand Deployments with ten pods and two budgets each.
func TestAWorkloadEnqueuesOnlyItsBudgets(t *testing.T) {
	const apps, podsPerApp = 1000, 10
	var objects []runtime.Object
	var budgets []*v1alpha1.PodUnavailableBudget
	for i := range apps {
		name := fmt.Sprintf("app-%d", i)
		budgets = append(budgets, targeting(name), selecting("of-"+name, v1alpha1.PodSelector{MatchLabels: map[string]string{"app": name}}))
		objects = append(objects, deploymentOf(name), replicaSetOf(name))
		for range podsPerApp {
			objects = append(objects, newPod(len(objects), controlledBy("ReplicaSet", name+"-1"), func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": name}
			}))
		}
	}
	budgets = append(budgets, targeting("idle"), selecting("without-label", v1alpha1.PodSelector{MatchExpressions: []v1alpha1.PodSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}}}))
	objects = append(objects, deploymentOf("idle"))
	w := newFixture(t, newBudget(nil), objects...)
	affected := affectedBudgets{budgets: budgetIndex(t, budgets), pods: w.index, owners: w.owners}
	if err := w.index.AddIndexers(controllerIndexers); err != nil {
		t.Fatal(err)
	}
	selected := deploymentOf("idle")
	selected.Spec.Template.Labels = map[string]string{"app": "app-7"}
	adopted := replicaSetOf("app-7")
	adopted.OwnerReferences = controlledBy("Deployment", "gone")
	for name, tc := range map[string]struct {
		workload any
		want     []string
		// targets is how many budgets with a target are enqueued beside want.
		targets int
	}{
		"a Deployment":                     {deploymentOf("app-7"), []string{"app-7", "of-app-7"}, 0},
		"a ReplicaSet":                     {replicaSetOf("app-7"), []string{"app-7", "of-app-7"}, 0},
		"a Deployment without pods":        {deploymentOf("idle"), []string{"idle"}, 0},
		"one that a selector matches":      {selected, []string{"idle", "of-app-7"}, 0},
		"a ReplicaSet whose owner is gone": {adopted, []string{"app-7", "of-app-7"}, apps},
		"a workload that no budget covers": {deploymentOf("other"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			workload, ok := ownerFrom(tc.workload)
			if !ok {
				t.Fatal("not a workload")
			}
			got, targets := map[string]bool{}, 0
			for _, b := range affected.affectedBy(workload, "ns") {
				if slices.Contains(tc.want, b.Name) || b.Spec.TargetRef == nil {
					got[b.Name] = true
				} else {
					targets++
				}
			}
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, tc.want) || targets != tc.targets {
				t.Errorf("got %v and %d targets, want %v and %d", names, targets, tc.want, tc.targets)
			}
		})
	}
}

func deploymentOf(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(10))}}
}

func replicaSetOf(deployment string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: deployment + "-1", UID: types.UID("uid-" + deployment + "-1"), OwnerReferences: controlledBy("Deployment", deployment)},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(10))},
	}
}
