package budget

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/intstr"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

var (
	nodes        = nodeKind.WithVersion("v1")
	podKind      = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	gameKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}
	groupSetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "GroupSet"}
	rolloutKind  = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}
	cloneSetKind = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	jobKind      = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "BroadcastJob"}
)

// scale is spec.replicas and status.replicas of a scale subresource.
type scale struct{ wanted, observed int64 }

// withOwners adds objects that are read live, and the scale subresources of some of
// them by name. Names in forbidden may not be read; their resource is before a slash.
func (w *fixture) withOwners(t *testing.T, objects []*unstructured.Unstructured, scales map[string]scale, forbidden ...string) {
	t.Helper()
	all := make([]runtime.Object, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), all...)
	client.PrependReactor("get", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		get := a.(clienttesting.GetAction)
		resource := strings.TrimSuffix(a.GetResource().Resource+"/"+a.GetSubresource(), "/")
		for _, f := range forbidden {
			if f == resource {
				return true, nil, apierrs.NewForbidden(a.GetResource().GroupResource(), get.GetName(), errors.New("no permission"))
			}
		}
		if a.GetSubresource() != "scale" {
			return false, nil, nil
		}
		found, ok := scales[get.GetName()]
		if !ok {
			return true, nil, apierrs.NewNotFound(a.GetResource().GroupResource(), get.GetName())
		}
		return true, &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"replicas": found.wanted}, "status": map[string]any{"replicas": found.observed},
		}}, nil
	})
	w.owners.client, w.owners.mapper = client, newMapper(nodes, podKind, gameKind, groupSetKind, jobKind, rolloutKind, cloneSetKind)
}

func newOwner(kind schema.GroupVersionKind, name string, above []metav1.OwnerReference, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range fields {
		o.Object[k] = v
	}
	o.SetGroupVersionKind(kind)
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetOwnerReferences(above)
	return o
}

func ownedBy(kind schema.GroupVersionKind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name, UID: types.UID("uid-" + name), Controller: new(true)}}
}

func podsOf(count int, owner []metav1.OwnerReference) []runtime.Object {
	all := make([]runtime.Object, count)
	for i := range count {
		all[i] = newPod(i, owner, nil)
	}
	return all
}

func statefulSet(name string, count int32, above []metav1.OwnerReference) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), OwnerReferences: above},
		Spec: appsv1.StatefulSetSpec{Replicas: &count}}
}

// groups is a set of two groups of three pods, as a LeaderWorkerSet creates them: the
// leader of each group controls the StatefulSet of the two others.
func groups() (cached []runtime.Object, live []*unstructured.Unstructured) {
	live = append(live, newOwner(groupSetKind, "web", nil, nil))
	cached = append(cached, statefulSet("leaders", 2, ownedBy(groupSetKind, "web")))
	for i := range 2 {
		leader := newPod(10*i, controlledBy("StatefulSet", "leaders"), nil)
		workers := fmt.Sprintf("workers-%d", i)
		live = append(live, newOwner(podKind, leader.Name, leader.OwnerReferences, nil))
		cached = append(cached, leader, statefulSet(workers, 2, ownedBy(podKind, leader.Name)),
			newPod(10*i+1, controlledBy("StatefulSet", workers), nil), newPod(10*i+2, controlledBy("StatefulSet", workers), nil))
	}
	return cached, live
}

// blueGreen has the active and the preview ReplicaSet of a Rollout, with two pods each.
func blueGreen() []runtime.Object {
	var all []runtime.Object
	for i, name := range []string{"active", "preview"} {
		all = append(all, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), OwnerReferences: ownedBy(rolloutKind, "web")},
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}})
		for j := range 2 {
			all = append(all, newPod(2*i+j, controlledBy("ReplicaSet", name), nil))
		}
	}
	return all
}

func TestTheReplicasOfOwnersOfAnyKind(t *testing.T) {
	game := newOwner(gameKind, "web", nil, map[string]any{"spec": map[string]any{"instances": int64(3)}})
	ofGame := ownedBy(gameKind, "web")
	inGroups, groupOwners := groups()
	job := newOwner(jobKind, "web", nil, map[string]any{"spec": map[string]any{"parallelism": int64(1)}, "status": map[string]any{"desired": int64(3), "active": int64(3)}})
	for _, tc := range []struct {
		name      string
		objects   []runtime.Object
		live      []*unstructured.Unstructured
		scales    map[string]scale
		forbidden []string
		total     int32
		allowed   int32
		unknown   string
	}{
		{name: "its scale subresource counts", objects: podsOf(3, ofGame), live: []*unstructured.Unstructured{game},
			scales: map[string]scale{"web": {3, 3}}, total: 3, allowed: 1},
		{name: "a pod is missing", objects: podsOf(2, ofGame), live: []*unstructured.Unstructured{game},
			scales: map[string]scale{"web": {3, 2}}, total: 3},
		{name: "a scale-down", objects: podsOf(5, ofGame), live: []*unstructured.Unstructured{game},
			scales: map[string]scale{"web": {3, 5}}, total: 3, allowed: 1},
		{name: "no scale subresource", objects: podsOf(3, ofGame), live: []*unstructured.Unstructured{game}, total: 3, unknown: "Game.example.com web: it has no scale subresource"},
		{name: "the scale subresource may not be read", objects: podsOf(3, ofGame), live: []*unstructured.Unstructured{game},
			forbidden: []string{"games/scale"}, total: 3, unknown: `permit get on games/scale of group "example.com"`},
		{name: "the owner may not be read", objects: podsOf(3, ofGame), live: []*unstructured.Unstructured{game},
			forbidden: []string{"games"}, total: 3, unknown: `permit get on games of group "example.com"`},
		{name: "a kind that is not served", objects: podsOf(3, ownedBy(schema.GroupVersionKind{Group: "nowhere", Version: "v1", Kind: "Thing"}, "web")),
			total: 3, unknown: "Thing.nowhere web: the API server does not serve the kind"},
		{name: "replicas that are groups of its own pods", objects: podsOf(6, ofGame), live: []*unstructured.Unstructured{game},
			scales: map[string]scale{"web": {2, 2}}, total: 6, unknown: "its scale subresource counts 2, but 6 pods exist"},
		{name: "replicas that are groups of StatefulSets", objects: inGroups, live: groupOwners,
			scales: map[string]scale{"web": {2, 2}}, total: 6, allowed: 1},
		{name: "groups whose owner may not be read", objects: inGroups, live: groupOwners,
			forbidden: []string{"groupsets"}, total: 6, allowed: 1},
		{name: "a Deployment below an owner that may not be read", forbidden: []string{"games"},
			objects: below(application(3, 4, 4), ofGame), live: []*unstructured.Unstructured{game}, total: 3, allowed: 1},
		{name: "a surge below an owner with replicas", scales: map[string]scale{"web": {1, 1}},
			objects: below(application(3, 4, 4), ofGame), live: []*unstructured.Unstructured{game}, total: 3, allowed: 1},
		{name: "a Rollout with a preview", scales: map[string]scale{"web": {2, 4}},
			objects: blueGreen(), live: []*unstructured.Unstructured{newOwner(rolloutKind, "web", nil, nil)}, total: 4, allowed: 1},
		{name: "a Rollout with a preview, which may not be read", forbidden: []string{"rollouts"}, objects: blueGreen(), total: 4, allowed: 1},
		{name: "a BroadcastJob whose parallelism was lowered below its pods", objects: podsOf(3, ownedBy(jobKind, "web")), live: []*unstructured.Unstructured{job}, total: 3, allowed: 1},
		{name: "static pods of a Node that may not be read", objects: podsOf(3, ownedBy(nodes, "node-1")), forbidden: []string{"nodes"}, total: 3, allowed: 1},
		{name: "static pods beside those of a Deployment", objects: append(application(3, 3, 3), podsOf(4, ownedBy(nodes, "node-1"))[3]),
			forbidden: []string{"nodes"}, total: 4, allowed: 1},
		{name: "a Node of another group", objects: podsOf(3, ownedBy(schema.GroupVersionKind{Group: "nowhere", Version: "v1", Kind: "Node"}, "web")),
			total: 3, unknown: "Node.nowhere web: the API server does not serve the kind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newFixture(t, newBudget(nil), tc.objects...)
			w.withOwners(t, tc.live, tc.scales, tc.forbidden...)
			s := w.reconcile(t)
			if s.TotalReplicas != tc.total || s.UnavailableAllowed != tc.allowed || s.ObservedGeneration != 1 {
				t.Errorf("total %d, allowed %d; want %d, %d", s.TotalReplicas, s.UnavailableAllowed, tc.total, tc.allowed)
			}
			c := s.GetCondition(v1alpha1.BudgetSynced)
			if c.IsFalse() != (tc.unknown != "") || !strings.Contains(c.Message, tc.unknown) {
				t.Errorf("condition Synced is %s %q, want %q", c.Status, c.Message, tc.unknown)
			}
			if tc.unknown != "" && c.Reason != v1alpha1.ReasonOwnersUnknown {
				t.Errorf("reason is %s", c.Reason)
			}
		})
	}
}

// The workers of the group may be deleted at any time, and the LeaderWorkerSet creates the group again.
func TestTheGroupOfATerminatingLeaderIsWantedButNotAvailable(t *testing.T) {
	cached, live := groups()
	now := metav1.Now()
	cached[1].(*corev1.Pod).DeletionTimestamp = &now
	live[1].SetDeletionTimestamp(&now)
	w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(4)) }), cached...)
	w.withOwners(t, live, map[string]scale{"web": {2, 2}})
	if s := w.reconcile(t); s.TotalReplicas != 6 || s.CurrentAvailable != 3 || s.UnavailableAllowed != 1 {
		t.Errorf("total %d, available %d, allowed %d; want 6, 3, 1", s.TotalReplicas, s.CurrentAvailable, s.UnavailableAllowed)
	}
}

// The owner of a subset wants the pods of all subsets.
func TestAnOwnerAboveTheTargetIsNotCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		change         func(*v1alpha1.PodUnavailableBudget)
		total, allowed int32
	}{
		"selector": {nil, 10, 0},
		"target": {func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
		}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(podsOf(3, controlledBy("StatefulSet", "web")), statefulSet("web", 3, ownedBy(gameKind, "game")))
			w := newFixture(t, newBudget(tc.change), objects...)
			w.withOwners(t, []*unstructured.Unstructured{newOwner(gameKind, "game", nil, nil)}, map[string]scale{"game": {10, 10}})
			if s := w.reconcile(t); s.TotalReplicas != tc.total || s.UnavailableAllowed != tc.allowed {
				t.Errorf("total %d, allowed %d; want %d, %d", s.TotalReplicas, s.UnavailableAllowed, tc.total, tc.allowed)
			}
		})
	}
}

// A CRD stops to serve the version that is in the references of the pods. Nobody rewrites them.
func TestPodsCountWhenTheVersionOfTheirOwnerIsNotServedAnymore(t *testing.T) {
	w := newFixture(t, newBudget(nil), podsOf(3, ownedBy(gameKind, "web"))...)
	w.withOwners(t, []*unstructured.Unstructured{newOwner(gameKind, "web", nil, nil)}, map[string]scale{"web": {3, 3}})
	w.owners.client.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "games", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewGenericServerResponse(http.StatusNotFound, "get", a.GetResource().GroupResource(), "web", "404 page not found", 0, true)
	})
	if found, err := w.owners.readCached(t.Context(), gameKind.GroupKind(), gameKind.Version, "ns", "web"); err == nil {
		t.Errorf("the owner is %+v, want an error", found)
	}
}

// below puts a Deployment below an owner.
func below(objects []runtime.Object, above []metav1.OwnerReference) []runtime.Object {
	objects[0].(*appsv1.Deployment).OwnerReferences = above
	return objects
}

// A charged pod is deleted, and its owner does not replace it.
func TestADeletedPodOfACustomResourceStaysCounted(t *testing.T) {
	game := newOwner(gameKind, "web", nil, nil)
	w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) {
		b.Status.DeletedPods = map[types.UID]string{"uid-pod-0": "100/token"}
	}), podsOf(3, ownedBy(gameKind, "web"))...)
	w.withOwners(t, []*unstructured.Unstructured{game}, map[string]scale{"web": {3, 3}})
	if err := w.index.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-0"}}); err != nil {
		t.Fatal(err)
	}
	w.podWatch.observe(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "500"}})
	if s := w.reconcile(t); s.TotalReplicas != 3 || s.CurrentAvailable != 2 || s.UnavailableAllowed != 0 {
		t.Errorf("got %+v", s)
	}
}

// A CloneSet is not watched. Its 5 new pods are not Ready, so 5 of 10 are available and
// nothing may be unavailable. The owner that was read before the scale-up still wants 5.
func TestAScaleUpOfAnOwnerThatIsNotWatchedIsSeenWhileItIsRemembered(t *testing.T) {
	clone := func(replicas int64) *unstructured.Unstructured {
		return newOwner(cloneSetKind, "web", nil, map[string]any{"spec": map[string]any{"replicas": replicas}})
	}
	w := newFixture(t, newBudget(nil), podsOf(5, ownedBy(cloneSetKind, "web"))...)
	w.withOwners(t, []*unstructured.Unstructured{clone(5)}, nil)
	reconcile := func(allowed int32, within time.Duration) {
		t.Helper()
		b := w.live(t)
		w.throttle.forget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
		err := w.ReconcileKind(t.Context(), b)
		again, after := controller.IsRequeueKey(err)
		if got := w.live(t).Status.UnavailableAllowed; got != allowed || !again || after > within {
			t.Errorf("%d allowed, again after %s (%v); want %d and at most %s", got, after, err, allowed, within)
		}
	}
	reconcile(1, unwatchedResync)

	w.withOwners(t, []*unstructured.Unstructured{clone(10)}, nil)
	for i := 5; i < 10; i++ {
		if err := w.index.Add(newPod(i, ownedBy(cloneSetKind, "web"), func(p *corev1.Pod) { p.Status.Conditions = nil })); err != nil {
			t.Fatal(err)
		}
	}
	reconcile(1, ownerCacheTTL)
	w.owners.cache = utilcache.NewExpiring() // the time has passed
	reconcile(0, unwatchedResync)
}

// The former CloneSet is cached. The pods of the new one do not count yet, and cause no further
// reconciliation.
func TestARecreatedOwnerThatIsNotWatchedIsSeenWhenTheFormerIsNotCachedAnymore(t *testing.T) {
	former := newOwner(cloneSetKind, "web", nil, map[string]any{"spec": map[string]any{"replicas": int64(3)}})
	recreated := ownedBy(cloneSetKind, "web")
	recreated[0].UID = "uid-next"
	w := newFixture(t, newBudget(nil), podsOf(3, recreated)...)
	w.withOwners(t, []*unstructured.Unstructured{former}, nil)
	for _, within := range []time.Duration{unwatchedResync, ownerCacheTTL} { // the owner is read, and then cached
		b := w.live(t)
		w.throttle.forget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
		err := w.ReconcileKind(t.Context(), b)
		if again, after := controller.IsRequeueKey(err); !again || after > within {
			t.Errorf("again after %s (%v), want at most %s", after, err, within)
		}
	}
}

// Nodes whose pod has ended want no further pod. One whose pod was deleted does.
func TestABroadcastJobWantsNoPodsOnNodesWhosePodHasEnded(t *testing.T) {
	running, ended := func(*corev1.Pod) {}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	deleted := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	type pods = []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		pods           pods
		parallelism    any
		phase          string
		total, allowed int32
	}{
		"all run":                                      {pods{running, running, running, running}, nil, "running", 4, 1},
		"some have ended":                              {pods{running, running, ended, ended}, nil, "running", 2, 1},
		"some have ended, one was deleted":             {pods{running, deleted, ended, ended}, nil, "running", 2, 0},
		"an ended pod was deleted":                     {pods{running, running, ended}, nil, "running", 3, 0},
		"all have ended":                               {pods{ended, ended, ended, ended}, nil, "running", 0, 0},
		"parallelism":                                  {pods{running, running, ended}, int64(2), "running", 2, 1},
		"fewer nodes than parallelism left":            {pods{running, ended, ended, ended}, int64(2), "running", 1, 1},
		"more have ended than it has nodes":            {pods{ended, ended, ended, ended, ended}, nil, "running", 0, 0},
		"nodes were removed whose pods have ended":     {pods{running, running, ended, ended, ended, ended}, nil, "running", 2, 1},
		"paused, so it keeps pods of a node that left": {pods{running, running, ended, ended}, nil, "paused", 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			active := int64(0)
			for i, change := range tc.pods {
				p := newPod(i, ownedBy(jobKind, "web"), change)
				if p.Status.Phase == corev1.PodRunning {
					active++
				}
				objects = append(objects, p)
			}
			w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) { maxUnavailable(1)(&b.Spec) }), objects...)
			spec := map[string]any{}
			if tc.parallelism != nil {
				spec["parallelism"] = tc.parallelism
			}
			w.withOwners(t, []*unstructured.Unstructured{newOwner(jobKind, "web", nil, map[string]any{"spec": spec,
				"status": map[string]any{"desired": int64(4), "active": active, "phase": tc.phase}})}, nil)
			if s := w.reconcile(t); s.TotalReplicas != tc.total || s.UnavailableAllowed != tc.allowed {
				t.Errorf("total %d, allowed %d, want %d and %d", s.TotalReplicas, s.UnavailableAllowed, tc.total, tc.allowed)
			}
		})
	}
}
