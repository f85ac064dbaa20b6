package budget

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
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

// The conversion webhook of another workload fails.
func TestOnlyABudgetThatMayCoverAPodDependsOnItsOwners(t *testing.T) {
	target := func(apiVersion, kind, name string) func(*v1alpha1.PodUnavailableBudget) {
		return func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: apiVersion, Kind: kind, Name: name}
		}
	}
	for name, tc := range map[string]struct {
		change         func(*v1alpha1.PodUnavailableBudget)
		total, allowed int32
		synced         bool
	}{
		"a target that counts its pods":       {target("apps", "Deployment", "web"), 3, 1, true},
		"a target without pods":               {target("apps", "StatefulSet", "web"), 2, 0, true},
		"a target that counts groups of pods": {target("example.com", "Game", "web"), 0, 0, false},
		"a target that does not exist":        {target("apps", "Deployment", "gone"), 0, 0, false},
		"a target that cannot be read":        {target("apps.kruise.io", "CloneSet", "x"), 0, 0, false},
		"a selector":                          {nil, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			charge := budget.Entry{ResourceVersion: "101", UID: "uid-pod-9", Token: "7"}
			b := newBudget(tc.change)
			maxUnavailable(2)(&b.Spec) // one of them is charged
			b.Status.UnavailablePods = map[string]string{"pod-9": charge.String()}
			w := newFixture(t, b, append(application(3, 3, 3), statefulSet("web", 2, nil), newPod(9, ownedBy(cloneSetKind, "x"), nil))...)
			w.withOwners(t, []*unstructured.Unstructured{newOwner(gameKind, "web", nil, nil)}, map[string]scale{"web": {3, 3}})
			w.owners.client.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "clonesets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrs.NewInternalError(errors.New("conversion webhook failed"))
			})
			again, wait := controller.IsRequeueKey(w.ReconcileKind(t.Context(), w.live(t)))
			s := w.live(t).Status
			if s.TotalReplicas != tc.total || s.UnavailableAllowed != tc.allowed || s.GetCondition(v1alpha1.BudgetSynced).IsTrue() != tc.synced {
				t.Errorf("total %d, allowed %d, Synced %+v", s.TotalReplicas, s.UnavailableAllowed, s.GetCondition(v1alpha1.BudgetSynced))
			}
			if len(s.UnavailablePods) != 1 {
				t.Error("the charge of the pod was removed")
			}
			if !again || wait != ownerCacheTTL {
				t.Errorf("reconciled again %t after %s", again, wait)
			}
		})
	}
}

// The conversion webhook of another workload fails.
func TestABroadcastJobWantsNoPodsOnNodesWhosePodHasEndedWhileOtherOwnersCannotBeRead(t *testing.T) {
	b := targeting("web")
	b.Spec.TargetRef.APIVersion, b.Spec.TargetRef.Kind = jobKind.GroupVersion().String(), jobKind.Kind
	objects := append(podsOf(2, ownedBy(jobKind, "web")), newPod(9, ownedBy(cloneSetKind, "x"), nil))
	for i := range 2 {
		objects = append(objects, newPod(10+i, ownedBy(jobKind, "web"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
	}
	w := newFixture(t, b, objects...)
	w.withOwners(t, []*unstructured.Unstructured{newOwner(jobKind, "web", nil, map[string]any{"status": map[string]any{"desired": int64(4)}})}, nil)
	w.owners.client.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "clonesets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewInternalError(errors.New("conversion webhook failed"))
	})
	if s := w.reconcile(t); s.TotalReplicas != 2 {
		t.Errorf("total %d, want 2", s.TotalReplicas)
	}
}

// The informers of the workloads lag behind that of the pods.
func TestABudgetAllowsNothingWhileAnOwnerOfAWatchedKindCannotBeRead(t *testing.T) {
	unread := revision{"web-2", 3, 3, 3, 3}.objects(10)[2:]
	w := newFixture(t, ofKnativeService(maxUnavailable(1)), append(revision{"web-1", 3, 3, 3, 3}.objects(0), unread...)...)
	w.withOwners(t, []*unstructured.Unstructured{knativeServiceWeb("web-1", "web-2")}, nil)
	w.owners.client.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewInternalError(errors.New("unavailable"))
	})
	if s := w.reconcile(t); s.UnavailableAllowed != 0 || !s.GetCondition(v1alpha1.BudgetSynced).IsFalse() {
		t.Errorf("total %d, allowed %d, Synced %+v", s.TotalReplicas, s.UnavailableAllowed, s.GetCondition(v1alpha1.BudgetSynced))
	}
}

// hanging is a client whose reads end with their context, except for one object.
type hanging struct {
	dynamic.NamespaceableResourceInterface
	found *unstructured.Unstructured
}

func (h hanging) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return h
}

func (h hanging) Namespace(string) dynamic.ResourceInterface { return h }

func (h hanging) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if name == h.found.GetName() {
		return h.found, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The owners are of two kinds, and each kind delays the budget once, despite a conflict. The target is of
// one of the kinds.
func TestOwnersThatCannotBeReadInTimeDelayABudgetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds, objects := []schema.GroupVersionKind{cloneSetKind, gameKind}, podsOf(3, ownedBy(cloneSetKind, "web"))
		for i := range 20 {
			objects = append(objects, newPod(10+i, ownedBy(kinds[i%2], fmt.Sprint(i)), nil))
		}
		b := targeting("web")
		b.Spec.TargetRef.APIVersion, b.Spec.TargetRef.Kind = cloneSetKind.GroupVersion().String(), cloneSetKind.Kind
		w := newFixture(t, b, objects...)
		w.owners.client = hanging{found: newOwner(cloneSetKind, "web", nil, map[string]any{"spec": map[string]any{"replicas": int64(3)}})}
		w.owners.mapper = newMapper(kinds...)
		conflicts := 0
		w.client.PrependReactor("update", "podunavailablebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts++
			return conflicts == 1, nil, apierrs.NewConflict(schema.GroupResource{}, "web", errors.New("charged"))
		})
		begin := time.Now()
		again, wait := controller.IsRequeueKey(w.ReconcileKind(t.Context(), b))
		if took := time.Since(begin); took > 2*ownerCacheTTL || !again || wait != unwatchedResync {
			t.Errorf("took %s, reconciled again %t after %s", took, again, wait)
		}
		if s := w.live(t).Status; s.UnavailableAllowed != 1 {
			t.Errorf("allowed %d, Synced %+v", s.UnavailableAllowed, s.GetCondition(v1alpha1.BudgetSynced))
		}
	})
}

// A pod was evicted, and its StatefulSet cannot create it again.
func TestASelectedOwnerCountsWhileItHasNoPods(t *testing.T) {
	web := map[string]string{"app": "web", "zone": "a"}
	without := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := statefulSet("b", 1, nil)
		s.Spec.Template.Labels = web
		change(s)
		return s
	}
	deployment := deploymentOf("b")
	deployment.Spec.Template.Labels = web
	for name, tc := range map[string]struct {
		other          runtime.Object
		pod            func(*corev1.Pod)
		total, allowed int32
	}{
		"a StatefulSet":        {without(func(*appsv1.StatefulSet) {}), nil, 2, 0},
		"a Deployment":         {deployment, nil, 11, 0},
		"its pod has failed":   {without(func(*appsv1.StatefulSet) {}), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 2, 0},
		"its pod is available": {without(func(*appsv1.StatefulSet) {}), func(*corev1.Pod) {}, 2, 1},
		"scaled to 0":          {without(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32) }), nil, 1, 1},
		"not selected":         {without(func(s *appsv1.StatefulSet) { s.Spec.Template.Labels = map[string]string{"app": "db"} }), nil, 1, 1},
		"terminating":          {without(func(s *appsv1.StatefulSet) { s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{"x"} }), nil, 1, 1},
		"below another owner":  {without(func(s *appsv1.StatefulSet) { s.OwnerReferences = ownedBy(gameKind, "web") }), nil, 1, 1},
		"in another namespace": {without(func(s *appsv1.StatefulSet) { s.Namespace = "other" }), nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := trimOwner(tc.other)
			if err != nil {
				t.Fatal(err)
			}
			objects := []runtime.Object{statefulSet("a", 1, nil), newPod(0, controlledBy("StatefulSet", "a"), nil), other.(runtime.Object)}
			if tc.pod != nil {
				objects = append(objects, newPod(1, controlledBy("StatefulSet", "b"), tc.pod))
			}
			if s := newFixture(t, newBudget(nil), objects...).reconcile(t); s.TotalReplicas != tc.total || s.UnavailableAllowed != tc.allowed {
				t.Errorf("total %d, allowed %d; want %d, %d", s.TotalReplicas, s.UnavailableAllowed, tc.total, tc.allowed)
			}
		})
	}
}

// A pod of the target has failed, and the target cannot create it again, or has not yet.
func TestATargetCountsWhileAllItsPodsAreCompleted(t *testing.T) {
	kind := batchJob.WithVersion("v1")
	job := func(status map[string]any) *unstructured.Unstructured {
		return newOwner(kind, "a", nil, map[string]any{"spec": map[string]any{"parallelism": int64(2)}, "status": status})
	}
	ended := map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
	for name, tc := range map[string]struct {
		target  schema.GroupVersionKind
		job     *unstructured.Unstructured
		desired int32
	}{
		"a StatefulSet":      {appsv1.SchemeGroupVersion.WithKind("StatefulSet"), job(nil), 2},
		"a Job":              {kind, job(map[string]any{"failed": int64(1)}), 2},
		"a Job that is over": {kind, job(ended), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudget(func(b *v1alpha1.PodUnavailableBudget) {
				b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: tc.target.GroupVersion().String(), Kind: tc.target.Kind, Name: "a"}
				b.Spec.MaxUnavailable = new(intstr.FromInt32(0))
			})
			failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
			w := newFixture(t, b, statefulSet("a", 2, nil), newPod(0, ownedBy(tc.target, "a"), failed))
			w.withOwners(t, []*unstructured.Unstructured{tc.job}, nil)
			w.owners.mapper = newMapper(kind)
			if s := w.reconcile(t); s.TotalReplicas != tc.desired || s.DesiredAvailable != tc.desired {
				t.Errorf("total %d, desired %d; want %d", s.TotalReplicas, s.DesiredAvailable, tc.desired)
			}
		})
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
			tally := newOwnerTally(t.Context(), w.owners, "ns", unansweredKinds{})
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
		if observed, _, err := w.gather(b.Context(), target, scope, unansweredKinds{}); err != nil || observed.Total != 10 || len(observed.Pods) != 10 {
			b.Fatal(observed.Total, len(observed.Pods), err)
		}
	}
}

func TestOnlyOwnersThatAreNotWatchedAreReadEveryTenSeconds(t *testing.T) {
	custom := newPod(9, []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Game", Name: "web", UID: "uid", Controller: new(true)}}, nil)
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
		"no pods":                    {nil, nil, nothingAfter},
		"a Deployment as the target": {targetOf("Deployment"), application(3, 3, 0), watchedResync},
		"another kind":               {nil, append(application(3, 3, 3), custom), unwatchedResync},
		"another kind as the target": {targetOf("CloneSet"), nil, unwatchedResync},
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
