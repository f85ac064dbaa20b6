package rollback

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"go.opentelemetry.io/otel/metric/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// fixture is a fake API server with a webhook, a Deployment web that was updated from
// template v1 (attempt 1, saved) to v2 (attempt 2), and its pods.
type fixture struct {
	*Reconciler
	t       *testing.T
	dynamic *dynamicfake.FakeDynamicClient
	kube    *kubefake.Clientset
	change  *fake.Clientset
	pods    cache.Indexer
	nodes   cache.Indexer
	known   cache.Indexer
	// cached is the workload in the cache; nil means that the cache is current.
	cached *workload.Workload
	// answers means that the webhook answers.
	answers  bool
	settings settings.Settings
	recorder *record.FakeRecorder
	// good and bad are the versions of v1 and v2.
	good, bad string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, answers: true, settings: settings.Default(), recorder: record.NewFakeRecorder(20)}
	d := deployment("v2", 2)
	before := deployment("v1", 1)
	w.good, w.bad = builder.Version(before), builder.Version(d)
	d.Annotations = releaseAnnotations(w.bad, 2)
	saved, err := savedtemplate.Build(&workload.Workload{Kind: workload.Deployment, ObjectMeta: d.ObjectMeta},
		v1alpha1.Release{Version: w.good, Attempt: 1}, builder.JSON(t, before.Spec.Template))
	if err != nil {
		t.Fatal(err)
	}
	w.dynamic = dynamicfake.NewSimpleDynamicClient(scheme.Scheme, d, replicaSet(d, "web-2", 2), replicaSet(before, "web-1", 1))
	w.dynamic.PrependReactor("patch", "deployments", w.patch)
	w.kube = kubefake.NewClientset(saved)
	w.change = fake.NewSimpleClientset()
	w.pods = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := w.pods.AddIndexers(cache.Indexers{releasefinder.ByController: func(obj any) ([]string, error) {
		return []string{string(metav1.GetControllerOf(obj.(*corev1.Pod)).UID)}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	w.nodes = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	w.known = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}); err != nil {
		t.Fatal(err)
	}
	w.Reconciler = &Reconciler{
		kube: w.kube, dynamic: w.dynamic, client: w.change,
		live: &liveworkload.Reader{Client: w.dynamic, Namespaces: corelisters.NewNamespaceLister(namespaces), Kind: func(apiVersion, kind string) (workload.Kind, bool) {
			i := slices.IndexFunc(workload.BuiltIn(), func(k workload.Kind) bool { return k.Is(apiVersion, kind) })
			return workload.BuiltIn()[max(i, 0)], i >= 0
		}},
		workloads: w, finder: w, pods: w.pods, nodes: nodestate.Nodes{Lister: corelisters.NewNodeLister(w.nodes)},
		changeWorkloads: listers.NewChangeWorkloadLister(w.known),
		settings:        func() settings.Settings { return w.settings },
		rollbacks:       metrics.NewCounter(noop.Meter{}, "breakwater_rollbacks_total"), reported: lru.New(10),
		clock: clocktesting.NewFakePassiveClock(now),
	}
	return w
}

func deployment(marker string, attempt int64) *appsv1.Deployment {
	d := builder.Deployment("web", 2, builder.Release(marker))
	d.Namespace, d.UID, d.Generation = "default", "u1", attempt
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: attempt, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2}
	return d
}

func releaseAnnotations(version string, attempt int64) map[string]string {
	return map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: fmt.Sprint(attempt)}
}

func replicaSet(d *appsv1.Deployment, name string, number int) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: d.Namespace, UID: types.UID(name), Labels: d.Spec.Selector.MatchLabels,
		Annotations:     releaseAnnotations(builder.Version(d), int64(number)),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, workload.Deployment.GroupVersionKind)},
	}}
	rs.Annotations["deployment.kubernetes.io/revision"] = strconv.Itoa(number)
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels = map[string]string{"app": "web", appsv1.DefaultDeploymentUniqueLabelKey: name}
	return rs
}

// pod adds a pod of a ReplicaSet that is three minutes old.
func (w *fixture) pod(name, set string, change func(*corev1.Pod)) {
	w.t.Helper()
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", CreationTimestamp: metav1.NewTime(ago(3 * time.Minute)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	change(p)
	if err := w.pods.Add(p); err != nil {
		w.t.Fatal(err)
	}
}

func isReady(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(3 * time.Minute))}}
}

func failsToPull(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
}

// isEvicted: the kubelet evicted the pod, which had been Ready.
func isEvicted(p *corev1.Pod) {
	isReady(p)
	p.Status.Phase, p.Status.Conditions[0].Status = corev1.PodFailed, corev1.ConditionFalse
}

// stuck adds a pod of v2 that cannot pull its image, and two Ready pods of v1.
func (w *fixture) stuck() *fixture {
	w.pod("web-2-a", "web-2", failsToPull)
	w.pod("web-1-a", "web-1", isReady)
	w.pod("web-1-b", "web-1", isReady)
	return w
}

// release adds a ChangeWorkload of the Deployment.
func (w *fixture) release(version string, attempt int64, phase v1alpha1.ReleasePhase, reason string) *v1alpha1.ChangeWorkload {
	w.t.Helper()
	c := &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangeWorkloadName("web", version), Namespace: "default",
			UID: types.UID("c" + version[:4] + fmt.Sprint(attempt)), ResourceVersion: "1"},
		Spec: v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: attempt,
			WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1"}},
		Status: v1alpha1.ChangeWorkloadStatus{Phase: phase, EntryTimeUnix: 1},
	}
	succeeded := map[v1alpha1.ReleasePhase]corev1.ConditionStatus{
		v1alpha1.ReleaseSuccess: corev1.ConditionTrue, v1alpha1.ReleaseSuspend: corev1.ConditionFalse, v1alpha1.ReleaseFailed: corev1.ConditionFalse,
	}[phase]
	c.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: succeeded, Reason: reason}}
	if err := w.known.Add(c); err != nil {
		w.t.Fatal(err)
	}
	if err := w.change.Tracker().Add(c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// reconcile reconciles a release and returns whether it is requeued.
func (w *fixture) reconcile(c *v1alpha1.ChangeWorkload) (again bool) {
	w.t.Helper()
	err := w.ReconcileKind(controller.WithEventRecorder(w.t.Context(), w.recorder), c)
	again, _ = controller.IsRequeueKey(err)
	if err != nil && !again {
		w.t.Fatal(err)
	}
	return again
}

// now returns the stored Deployment.
func (w *fixture) now() *unstructured.Unstructured {
	w.t.Helper()
	// From the tracker: a reactor must not ask the client that it reacts for.
	stored, err := w.dynamic.Tracker().Get(workload.Deployment.GroupVersionResource(), "default", "web")
	if err != nil {
		w.t.Fatal(err)
	}
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		w.t.Fatalf("the tracker holds a %T", stored)
	}
	return u.DeepCopy()
}

// edit changes the stored Deployment.
func (w *fixture) edit(f func(*unstructured.Unstructured)) {
	w.t.Helper()
	u := w.now()
	f(u)
	if err := w.dynamic.Tracker().Update(workload.Deployment.GroupVersionResource(), u, "default"); err != nil {
		w.t.Fatal(err)
	}
}

// editReplicaSets changes the stored ReplicaSets.
func (w *fixture) editReplicaSets(f func(*unstructured.Unstructured)) {
	w.t.Helper()
	sets := appsv1.SchemeGroupVersion.WithResource("replicasets")
	list, err := w.dynamic.Resource(sets).Namespace("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		f(&list.Items[i])
		if err := w.dynamic.Tracker().Update(sets, &list.Items[i], "default"); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *fixture) annotate(key, value string) {
	w.edit(func(u *unstructured.Unstructured) {
		m := u.GetAnnotations()
		m[key] = value
		u.SetAnnotations(m)
	})
}

// patch applies a patch as the API server does: a failed test is answered 422, a dry run
// stores nothing, and the webhook, if it answers, records the release of a new template.
func (w *fixture) patch(a clienttesting.Action) (bool, runtime.Object, error) {
	action := a.(clienttesting.PatchActionImpl)
	before := w.now()
	patch, err := jsonpatch.DecodePatch(action.GetPatch())
	if err != nil {
		return true, nil, err
	}
	raw, err := patch.Apply(builder.JSON(w.t, before.Object))
	if err != nil {
		return true, nil, apierrs.NewGenericServerResponse(422, "patch", appsv1.Resource("deployments"), "web", err.Error(), 0, true)
	}
	after := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &after.Object); err != nil {
		return true, nil, err
	}
	was, _ := workload.FromUnstructured(workload.Deployment, before)
	is, err := workload.FromUnstructured(workload.Deployment, after)
	if err != nil {
		return true, nil, err
	}
	version, err := workload.Version(workload.Deployment, &is.Template)
	if err != nil {
		return true, nil, err
	}
	if release, _ := v1alpha1.ReleaseOf(was.Annotations); version != release.Version && w.answers {
		m := after.GetAnnotations()
		for key, value := range releaseAnnotations(version, release.Attempt+1) {
			m[key] = value
		}
		after.SetAnnotations(m)
	}
	if len(action.PatchOptions.DryRun) > 0 {
		return true, after, nil
	}
	return true, after, w.dynamic.Tracker().Update(workload.Deployment.GroupVersionResource(), after, "default")
}

// Find implements Workloads.
func (w *fixture) Find(string, v1alpha1.WorkloadRef) *workload.Workload {
	if w.cached != nil {
		return w.cached
	}
	read, err := workload.FromUnstructured(workload.Deployment, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return read
}

// Pods implements Finder.
func (w *fixture) Pods(_ *workload.Workload, release v1alpha1.Release) ([]*corev1.Pod, error) {
	set := types.UID("web-1")
	if release.Version == w.bad {
		set = "web-2"
	}
	return releasefinder.Owned[*corev1.Pod](w.pods, set)
}

// HasVersion implements Finder.
func (w *fixture) HasVersion(*workload.Workload, *corev1.Pod, string) bool { return false }
