package budget

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// allReplicas is a Prober that reaches all replicas.
type allReplicas struct{}

func (allReplicas) Probe(context.Context, *v1alpha1.PodUnavailableBudget, bool) (sets.Set[string], sets.Set[string], error) {
	return sets.New("a"), sets.New("a"), nil
}

// fixture is a reconciler with a fake API server.
type fixture struct {
	*Reconciler
	client *fake.Clientset
	kube   *kubefake.Clientset
	index  cache.Indexer
}

func newFixture(t testing.TB, b *v1alpha1.PodUnavailableBudget, objects ...runtime.Object) *fixture {
	t.Helper()
	w := &fixture{client: fake.NewSimpleClientset(b), kube: kubefake.NewClientset(objects...)}
	w.index = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	sets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	stateful := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	seen := &podWatch{}
	for _, o := range objects {
		index := known
		switch o.(type) {
		case *corev1.Pod:
			index = w.index
			seen.observe(o)
		case *appsv1.ReplicaSet:
			index = sets
		case *appsv1.StatefulSet:
			index = stateful
		}
		if err := index.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	w.Reconciler = &Reconciler{
		client: w.client.PolicyV1alpha1(), podLister: corelisters.NewPodLister(w.index), podLists: podlist.New(w.kube.CoreV1(), maxListed, budget.TrimPod),
		owners: &owners{
			deployments: appslisters.NewDeploymentLister(known), replicaSets: appslisters.NewReplicaSetLister(sets),
			statefulSets: appslisters.NewStatefulSetLister(stateful), daemonSets: appslisters.NewDaemonSetLister(known),
			client: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), mapper: newMapper(), cache: utilcache.NewExpiring(), services: &knativeServices{},
		},
		podWatch: seen, charges: newChargeTimes(clock.RealClock{}, time.Minute), throttle: newThrottle(clock.RealClock{}),
		guarding: newGuardingCheck(allReplicas{}), refunded: metrics.NewCounter(noop.Meter{}, "breakwater_budget_charges_refunded_total"),
	}
	return w
}

// resettable is a mapper that cannot be reset.
type resettable struct{ meta.RESTMapper }

func (resettable) Reset() {}

// newMapper returns a mapper of the kinds of apps and of these.
func newMapper(more ...schema.GroupVersionKind) *apidiscovery.Mapper {
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} {
		more = append(more, appsv1.SchemeGroupVersion.WithKind(kind))
	}
	var versions []schema.GroupVersion
	for _, kind := range more {
		versions = append(versions, kind.GroupVersion())
	}
	m := meta.NewDefaultRESTMapper(versions)
	for _, kind := range more {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return apidiscovery.NewMapper(resettable{m})
}

func (w *fixture) reconcile(t *testing.T) v1alpha1.PodUnavailableBudgetStatus {
	t.Helper()
	b := w.live(t)
	err := w.ReconcileKind(t.Context(), b)
	if again, _ := controller.IsRequeueKey(err); err != nil && !again {
		t.Fatal(err)
	}
	return w.live(t).Status
}

func (w *fixture) live(t *testing.T) *v1alpha1.PodUnavailableBudget {
	t.Helper()
	b, err := w.client.PolicyV1alpha1().PodUnavailableBudgets("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newBudget(change func(*v1alpha1.PodUnavailableBudget)) *v1alpha1.PodUnavailableBudget {
	b := &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-web", Generation: 1},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector:       &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}},
			MaxUnavailable: new(intstr.FromInt32(1)),
		},
	}
	if change != nil {
		change(b)
	}
	return b
}

func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: new(true)}}
}

func newPod(n int, owner []metav1.OwnerReference, change func(*corev1.Pod)) *corev1.Pod {
	name := "pod-" + strconv.Itoa(n)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(100 + n),
			Labels: map[string]string{"app": "web"}, OwnerReferences: owner},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// application is a Deployment with its ReplicaSet and pods.
func application(wanted, ofSet, pods int32) []runtime.Object {
	all := []runtime.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-web"}, Spec: appsv1.DeploymentSpec{Replicas: &wanted}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid-web-1", OwnerReferences: controlledBy("Deployment", "web")},
			Spec: appsv1.ReplicaSetSpec{Replicas: &ofSet}},
	}
	for i := range pods {
		all = append(all, newPod(int(i), controlledBy("ReplicaSet", "web-1"), nil))
	}
	return all
}

func ending(objects []runtime.Object) []runtime.Object {
	d := objects[0].(*appsv1.Deployment)
	d.DeletionTimestamp, d.Finalizers = new(metav1.Now()), []string{"foregroundDeletion"}
	return objects
}

func TestTheNumbersOfABudget(t *testing.T) {
	target := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps", Kind: "Deployment", Name: "web"}
	}
	unready := func(p *corev1.Pod) { p.Status.Conditions = nil }
	for _, tc := range []struct {
		name                           string
		change                         func(*v1alpha1.PodUnavailableBudget)
		objects                        []runtime.Object
		total, desired, current, allow int32
	}{
		{"a Deployment, by labels", nil, application(3, 3, 3), 3, 2, 3, 1},
		{"a Deployment, by target", target, application(3, 3, 3), 3, 2, 3, 1},
		{"a Deployment without pods yet", target, application(3, 3, 0), 3, 2, 0, 0},
		{"a Deployment with missing pods", nil, application(3, 3, 2), 3, 2, 2, 0},
		{"a surge", nil, application(3, 5, 5), 3, 2, 5, 1},
		{"a scale-down", nil, application(3, 3, 5), 3, 2, 5, 3},
		{"scaled to 0", nil, application(0, 0, 3), 0, 0, 3, 3},
		{"a terminating Deployment", nil, ending(application(3, 3, 3)), 0, 0, 0, 0},
		{"pods without an owner count as desired", nil, []runtime.Object{newPod(1, nil, nil), newPod(2, nil, nil), newPod(3, nil, unready)}, 3, 2, 2, 0},
		{"pods of a deleted owner do not count", nil, []runtime.Object{newPod(1, controlledBy("ReplicaSet", "web-1"), nil)}, 0, 0, 0, 0},
		{"other pods", nil, append(application(3, 3, 3), newPod(9, nil, func(p *corev1.Pod) { p.Labels = nil })), 3, 2, 3, 1},
		{"completed pods", nil, append(application(3, 3, 3), newPod(9, nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })), 3, 2, 3, 1},
		{"exempt pods", nil, append(application(3, 3, 2), newPod(9, controlledBy("ReplicaSet", "web-1"), func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: "true"}
		})), 3, 2, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newFixture(t, newBudget(tc.change), tc.objects...).reconcile(t)
			got := [4]int32{s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed}
			if want := [4]int32{tc.total, tc.desired, tc.current, tc.allow}; got != want {
				t.Errorf("total, desired, current, allowed: got %v, want %v", got, want)
			}
			if s.ObservedGeneration != 1 {
				t.Error("observedGeneration is old")
			}
		})
	}
}

// The webhook charges between the reconciler's read and its write.
func TestAConcurrentChargeIsKept(t *testing.T) {
	w := newFixture(t, newBudget(nil), application(3, 3, 3)...)
	charged := false
	w.client.PrependReactor("update", "podunavailablebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if charged {
			return false, nil, nil
		}
		charged = true
		b := newBudget(func(b *v1alpha1.PodUnavailableBudget) {
			b.Status.DeletedPods = map[types.UID]string{"uid-pod-1": "101"}
		})
		if err := w.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), b, "ns"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrs.NewConflict(v1alpha1.Resource("podunavailablebudgets"), "web", errors.New("changed"))
	})
	s := w.reconcile(t)
	if len(s.DeletedPods) != 1 || s.CurrentAvailable != 2 || s.UnavailableAllowed != 0 {
		t.Errorf("got %+v", s)
	}
}

// A new leader with an old cache does not allow a deletion again that the
// previous leader had counted.
func TestAStaleCacheIsNotUsed(t *testing.T) {
	w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) { b.Status.PodsResourceVersion = "500" }), application(3, 3, 3)...)
	if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "pod-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := w.reconcile(t); s.CurrentAvailable != 2 || s.UnavailableAllowed != 0 {
		t.Errorf("got %+v", s)
	}
}

// A deletion takes effect at the end of its timeout, and the cache does not show it
// yet when its charge expires.
func TestAnExpiredChargeIsNotRefundedByAStaleCache(t *testing.T) {
	w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) {
		b.Status.DeletedPods = map[types.UID]string{"uid-pod-1": "101/token"}
	}), application(3, 3, 3)...)
	now := clocktesting.NewFakePassiveClock(time.Now())
	w.charges, w.throttle = newChargeTimes(now, time.Minute), newThrottle(now)
	if s := w.reconcile(t); len(s.DeletedPods) != 1 || s.UnavailableAllowed != 0 {
		t.Fatalf("before the charge expires: %+v", s)
	}
	if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "pod-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(time.Minute + budget.RepeatedTTL))
	if s := w.reconcile(t); s.CurrentAvailable != 2 || s.UnavailableAllowed != 0 {
		t.Errorf("got %+v", s)
	}
}

// The kubelet may need days for an in-place change, for example if the node has no room. Its
// charge does not end by time, so it causes no live list of the namespace, until the change
// may not have been made.
func TestAPendingChangeDoesNotListPodsFromTheAPIServer(t *testing.T) {
	running := func(image string) *corev1.Pod {
		return newPod(0, nil, func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://1"}}
		})
	}
	entry := budget.Entry{ResourceVersion: "100", UID: "uid-pod-0", Token: "7", Effects: budget.EffectsOf(running("web:1"), running("web:2"))}
	for name, tc := range map[string]struct {
		cached, live  string
		expired, kept bool
		lists         int
	}{
		"made":                            {"web:2", "web:2", true, true, 0},
		"not made, not expired":           {"web:1", "web:1", false, true, 0},
		"not made":                        {"web:1", "web:1", true, false, 1},
		"made, which the cache lacks yet": {"web:1", "web:2", true, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) {
				b.Status.UnavailablePods = map[string]string{"pod-0": entry.String()}
			}), running(tc.cached))
			now := clocktesting.NewFakePassiveClock(time.Now())
			w.charges, w.throttle = newChargeTimes(now, time.Minute), newThrottle(now)
			w.reconcile(t)
			if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), running(tc.live), "ns"); err != nil {
				t.Fatal(err)
			}
			after := time.Second
			if tc.expired {
				after = time.Minute + budget.RepeatedTTL
			}
			now.SetTime(now.Now().Add(after))
			if kept := len(w.reconcile(t).UnavailablePods) > 0; kept != tc.kept {
				t.Errorf("kept %t", kept)
			}
			if n := len(w.kube.Actions()); n != tc.lists {
				t.Errorf("%d requests to the API server, want %d: %v", n, tc.lists, w.kube.Actions())
			}
		})
	}
}

// OpenKruise restarts a container, which stops for up to its grace period and is Ready meanwhile. Without the
// charge, another container could be restarted before this one is down.
func TestTheChargeOfARestartIsKeptForTheGracePeriod(t *testing.T) {
	running := func(id string) *corev1.Pod {
		return newPod(0, nil, func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://" + id}}
		})
	}
	changed := running("1")
	changed.Spec.Containers[0].Image = "web:2"
	restart := func(grace int64) []budget.Effect {
		var r budget.Restart
		r.Strategy.TerminationGracePeriodSeconds = new(grace)
		return budget.EffectsOfRestart(running("1"), []string{"web"}, r)
	}
	const timeout = time.Minute + budget.RepeatedTTL
	for name, tc := range map[string]struct {
		effects []budget.Effect
		id      string
		after   time.Duration
		kept    bool
	}{
		"after the timeout":                        {restart(120), "1", timeout, true},
		"just before the end of the grace period":  {restart(120), "1", timeout + 2*time.Minute - 1, true},
		"after the grace period":                   {restart(120), "1", timeout + 2*time.Minute, false},
		"when the container is replaced":           {restart(120), "2", time.Second, false},
		"without a grace period":                   {restart(0), "1", timeout, false},
		"an update that was not made has no grace": {budget.EffectsOf(running("1"), changed), "1", timeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			entry := budget.Entry{ResourceVersion: "100", UID: "uid-pod-0", Token: "7", Effects: tc.effects}
			w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) {
				b.Status.UnavailablePods = map[string]string{"pod-0": entry.String()}
			}), running("1"))
			now := clocktesting.NewFakePassiveClock(time.Now())
			w.charges, w.throttle = newChargeTimes(now, time.Minute), newThrottle(now)
			if len(w.reconcile(t).UnavailablePods) == 0 {
				t.Fatal("the charge was removed at once")
			}
			after := running(tc.id)
			if err := errors.Join(w.index.Update(after), w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), after, "ns")); err != nil {
				t.Fatal(err)
			}
			now.SetTime(now.Now().Add(tc.after))
			if kept := len(w.reconcile(t).UnavailablePods) > 0; kept != tc.kept {
				t.Errorf("kept %t", kept)
			}
		})
	}
}

// The budget was changed, so the numbers in its status are those of the former limit.
func TestNothingIsAllowedWhileOwnersAreUnknown(t *testing.T) {
	objects := application(3, 3, 3)
	w := newFixture(t, newBudget(func(b *v1alpha1.PodUnavailableBudget) {
		b.Generation, b.Status.ObservedGeneration, b.Status.UnavailableAllowed = 2, 1, 1
	}), objects[2:]...)
	w.owners.client.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewInternalError(errors.New("etcd"))
	})
	s := w.reconcile(t)
	if s.UnavailableAllowed != 0 || s.GetCondition(v1alpha1.BudgetSynced).Status != corev1.ConditionFalse {
		t.Errorf("got %+v", s)
	}
	deletion := budget.Request{Operation: v1alpha1.OperationDelete, Generation: 2, Pods: []budget.Pod{{Name: "pod-0", UID: "uid-pod-0", BecomesUnavailable: true}}}
	if _, d := budget.Decide(w.live(t), []budget.Request{deletion}); d[0].Admitted || d[0].Unsynced || !strings.Contains(d[0].UnknownReplicas, "etcd") {
		t.Errorf("decided %+v", d[0])
	}
}
