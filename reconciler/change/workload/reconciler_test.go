package workload

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	fakenamespace "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	fakedynamicclient "knative.dev/pkg/injection/clients/dynamicclient/fake"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	fakechangeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	fakechangeworkload "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo/fake"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

func optedIn(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}
}

// sleep returns a Deployment with this attempt, as the webhook writes it; without an
// attempt, the webhook has not seen it.
func sleep(t *testing.T, attempt string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sleep", UID: "d", Labels: map[string]string{"app": "sleep"}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sleep"}}}}},
	}
	if attempt != "" {
		v := builder.Version(d)
		d.Labels[v1alpha1.VersionKey] = v
		d.Annotations = map[string]string{v1alpha1.VersionKey: v, v1alpha1.AttemptAnnotation: attempt}
	}
	return d
}

// of is the ChangeWorkload of a Deployment's attempt.
func of(t *testing.T, d *appsv1.Deployment, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	t.Helper()
	c := build(workloadinformertest.Workload(t, workload.Deployment, d), v1alpha1.Release{Version: builder.Version(d), Attempt: attempt}, "uid-kube-system", settings.Default(), now)
	c.UID, c.Status.Phase = types.UID(c.Name), phase
	return c
}

func named(c *v1alpha1.ChangeWorkload, name string) *v1alpha1.ChangeWorkload {
	c.Name, c.UID = name, types.UID(name)
	return c
}

// withoutUID returns a ChangeWorkload as it is sent to the API server.
func withoutUID(c *v1alpha1.ChangeWorkload) *v1alpha1.ChangeWorkload {
	c.UID = ""
	return c
}

// oneEach reports one revision per version.
type oneEach struct{}

func (oneEach) CountRevisions(*workload.Workload, string) (int, time.Time, error) {
	return 1, time.Time{}, nil
}

// newTestReconciler returns a Reconciler with caches and a fake API server that have the
// objects of the row.
func newTestReconciler(t *testing.T, row *rtesting.TableRow) (controller.Reconciler, rtesting.ActionRecorderList, rtesting.EventList) {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	dynamic, client := fakedynamicclient.Get(ctx), fakechangeclient.Get(ctx)
	stores := map[string]interface{ Add(any) error }{
		"namespace": fakenamespace.Get(ctx).Informer().GetIndexer(), "changeworkload": fakechangeworkload.Get(ctx).Informer().GetIndexer(),
	}
	for _, o := range append(row.Objects, optedIn("kube-system")) {
		var store string
		var err error
		switch o.(type) {
		case *appsv1.Deployment:
			workloadinformertest.Add(ctx, t, o)
			continue
		case *corev1.Namespace:
			store = "namespace"
		case *v1alpha1.ChangeWorkload:
			store, err = "changeworkload", client.Tracker().Add(o)
		}
		if err == nil {
			err = stores[store].Add(o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	workloads := workloadinformertest.Run(ctx, t)
	events := record.NewFakeRecorder(10)
	for _, reactor := range row.WithReactors {
		dynamic.PrependReactor("*", "*", reactor)
		client.PrependReactor("*", "*", reactor)
	}
	r := &Reconciler{
		dynamic: dynamic, client: client, workloads: workloads, revisions: oneEach{},
		namespaces:      fakenamespace.Get(ctx).Lister(),
		changeWorkloads: fakechangeworkload.Get(ctx).Lister(),
		settings:        settings.Default,
		cluster:         watchCluster(configmap.NewStaticWatcher(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config-altershield"}}), fakenamespace.Get(ctx).Lister()),
		recorder:        events,
		readmissions:    resend.New(clocktesting.NewFakePassiveClock(now)),
		readmitted:      metrics.NewCounter(noop.Meter{}, "breakwater_workload_readmissions_total"),
		clock:           clocktesting.NewFakePassiveClock(now),
	}
	if err := r.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return r, rtesting.ActionRecorderList{dynamic, client}, rtesting.EventList{Recorder: events}
}

func readmissionOf(name string) []clientgotesting.PatchActionImpl {
	p := clientgotesting.PatchActionImpl{Name: name, Patch: []byte("{}")}
	p.Namespace = "default"
	return []clientgotesting.PatchActionImpl{p}
}

func deleteOf(names ...string) []clientgotesting.DeleteActionImpl {
	var all []clientgotesting.DeleteActionImpl
	for _, name := range names {
		all = append(all, clientgotesting.NewDeleteAction(v1alpha1.SchemeGroupVersion.WithResource("changeworkloads"), "default", name))
	}
	return all
}

// webhook answers a readmission as the API server does when the webhook is there.
func webhook(t *testing.T) clientgotesting.ReactionFunc {
	return func(a clientgotesting.Action) (bool, runtime.Object, error) {
		return a.GetVerb() == "patch", workloadinformertest.Unstructured(t, sleep(t, "0")), nil
	}
}

func TestReconcile(t *testing.T) {
	d1 := sleep(t, "1")
	current := of(t, d1, 1, v1alpha1.ReleaseSuccess)
	newer := sleep(t, "2")
	withoutTemplate := sleep(t, "1")
	withoutTemplate.Spec.Template = corev1.PodTemplateSpec{}
	table := rtesting.TableTest{{
		Name: "a key without a Deployment is nothing to do",
		Key:  "default/Deployment.apps:gone",
	}, {
		Name:    "a Deployment outside opted-in namespaces is not changed",
		Key:     "default/Deployment.apps:sleep",
		Objects: []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, sleep(t, "")},
	}, {
		Name:       "a workload without a template gets no ChangeWorkload, and an Event",
		Key:        "default/Deployment.apps:sleep", // of an Argo Rollout with spec.workloadRef
		Objects:    []runtime.Object{optedIn("default"), withoutTemplate},
		WantEvents: []string{"Warning NoTemplate releases of this Deployment are not judged: spec.template has no containers: write the pod template there instead of a reference to it (spec.workloadRef)"},
		WantErr:    true, // asks to be queued again
	}, {
		Name:        "a Deployment without a version is readmitted; the rest waits for the webhook's work",
		Key:         "default/Deployment.apps:sleep",
		Objects:     []runtime.Object{optedIn("default"), sleep(t, "")},
		WantPatches: readmissionOf("sleep"), WithReactors: []clientgotesting.ReactionFunc{webhook(t)},
	}, {
		Name:        "a readmission without effect is due again later",
		Key:         "default/Deployment.apps:sleep",
		Objects:     []runtime.Object{optedIn("default"), sleep(t, "")},
		WantPatches: readmissionOf("sleep"), WantErr: true, // asks to be queued again
	}, {
		Name:        "a release gets its ChangeWorkload, named after the cluster's UID at the server",
		Key:         "default/Deployment.apps:sleep",
		Objects:     []runtime.Object{optedIn("default"), sleep(t, "1")},
		WantCreates: []runtime.Object{withoutUID(of(t, d1, 1, ""))},
	}, {
		Name: "a ChangeWorkload that the cache has not seen is looked for later",
		Key:  "default/Deployment.apps:sleep", WantErr: true,
		Objects:      []runtime.Object{optedIn("default"), sleep(t, "1")},
		WantCreates:  []runtime.Object{withoutUID(of(t, d1, 1, ""))},
		WithReactors: []clientgotesting.ReactionFunc{failing("create", alreadyExists)},
	}, {
		Name:         "a terminating namespace gets none",
		Key:          "default/Deployment.apps:sleep",
		Objects:      []runtime.Object{optedIn("default"), sleep(t, "1")},
		WantCreates:  []runtime.Object{withoutUID(of(t, d1, 1, ""))},
		WithReactors: []clientgotesting.ReactionFunc{failing("create", terminating)},
	}, {
		Name:        "a new attempt replaces the ChangeWorkload of the one before",
		Key:         "default/Deployment.apps:sleep",
		Objects:     []runtime.Object{optedIn("default"), newer, of(t, d1, 1, v1alpha1.ReleaseSuccess)},
		WantDeletes: deleteOf(current.Name),
		WantCreates: []runtime.Object{withoutUID(of(t, newer, 2, ""))},
	}, {
		Name: "a Success deletes the history, and no ChangeWorkload of another Deployment",
		Key:  "default/Deployment.apps:sleep",
		Objects: []runtime.Object{optedIn("default"), d1, of(t, d1, 1, v1alpha1.ReleaseSuccess),
			named(of(t, d1, 1, v1alpha1.ReleaseSuspend), "older"), func() runtime.Object {
				c := named(of(t, d1, 1, v1alpha1.ReleaseSuccess), "neighbour")
				c.Spec.WorkloadRef.UID, c.Spec.WorkloadRef.Name = "other", "neighbour"
				return c
			}()},
		WantDeletes: deleteOf("older"),
	}, {
		Name: "a newer release is not deleted while the readmission has no effect",
		Key:  "default/Deployment.apps:sleep",
		Objects: []runtime.Object{optedIn("default"), d1, of(t, d1, 1, v1alpha1.ReleaseSuccess),
			named(of(t, d1, 2, v1alpha1.ReleaseRunning), "newer")},
		WantPatches: readmissionOf("sleep"), WantErr: true, // asks to be queued again
	}, {
		Name: "the ChangeWorkloads of an earlier Deployment of the name are deleted, also while the release runs",
		Key:  "default/Deployment.apps:sleep",
		Objects: []runtime.Object{optedIn("default"), d1, of(t, d1, 1, v1alpha1.ReleaseRunning), func() runtime.Object {
			c := named(of(t, d1, 7, v1alpha1.ReleaseSuspend), "orphan")
			c.Spec.WorkloadRef.UID, c.OwnerReferences = "earlier", nil // deleted with --cascade=orphan
			return c
		}(), func() runtime.Object {
			c := named(of(t, d1, 7, v1alpha1.ReleaseSuspend), "of a StatefulSet")
			c.Spec.WorkloadRef.UID, c.Spec.WorkloadRef.Kind = "other", "StatefulSet"
			return c
		}()},
		WantDeletes: deleteOf("orphan"),
	}}
	table.Test(t, newTestReconciler)
}

// The next attempt has ChangePods of the same names.
func TestTheChangePodsOfADeletedReleaseAreDeletedWithIt(t *testing.T) {
	former := of(t, sleep(t, "1"), 1, v1alpha1.ReleaseRunning)
	row := rtesting.TableRow{Objects: []runtime.Object{optedIn("default"), sleep(t, "2"), former}}
	r, actions, _ := newTestReconciler(t, &row)
	if err := r.Reconcile(t.Context(), "default/Deployment.apps:sleep"); err != nil {
		t.Fatal(err)
	}
	all, err := actions.ActionsByVerb()
	if err != nil || len(all.DeleteCollections) != 1 {
		t.Fatalf("%+v, %v, want one deletion of a collection", all.DeleteCollections, err)
	}
	got := all.DeleteCollections[0]
	batch := labels.Set{v1alpha1.VersionKey: former.Spec.Reversion, v1alpha1.DeploymentNameLabel: "sleep"}
	if got.GetResource().Resource != "changepods" || got.GetNamespace() != "default" || !got.GetListRestrictions().Labels.Matches(batch) {
		t.Errorf("deleted %+v", got)
	}
	for key := range batch {
		other := labels.Merge(batch, labels.Set{key: "other"})
		if got.GetListRestrictions().Labels.Matches(other) {
			t.Errorf("deleted a ChangePod of %v", other)
		}
	}
}

func TestAStaleCacheDeletesNothing(t *testing.T) {
	// The cache still has attempt 1; the API server, and the leader before
	// this one, are at attempt 2.
	d1, d2 := sleep(t, "1"), sleep(t, "2")
	live := []clientgotesting.ReactionFunc{func(a clientgotesting.Action) (bool, runtime.Object, error) {
		return a.GetVerb() == "get" || a.GetVerb() == "patch", workloadinformertest.Unstructured(t, d2), nil
	}}
	rtesting.TableTest{{
		Name: "the ChangeWorkload of attempt 2 is not cached", Key: "default/Deployment.apps:sleep", WantErr: true, // asks to be queued again
		Objects:      []runtime.Object{optedIn("default"), d1, of(t, d1, 0, v1alpha1.ReleaseSuccess)},
		WithReactors: live,
	}, {
		Name: "it is: attempt 2 is readmitted, which has no effect", Key: "default/Deployment.apps:sleep",
		Objects:     []runtime.Object{optedIn("default"), d1, of(t, d2, 2, v1alpha1.ReleaseRunning)},
		WantPatches: readmissionOf("sleep"), WithReactors: live,
	}}.Test(t, newTestReconciler)
}

func TestAStaleCacheDeletesNoReleaseOfTheNewWorkload(t *testing.T) {
	// The cache still has the deleted workload, and already a ChangeWorkload of the new one.
	deleted, created := sleep(t, "1"), sleep(t, "1")
	created.UID = "new"
	ofNew := named(of(t, created, 1, v1alpha1.ReleaseRunning), "of-new")
	row := rtesting.TableRow{
		Name: "stale", Key: "default/Deployment.apps:sleep", WantErr: true, // asks to be queued again
		Objects: []runtime.Object{optedIn("default"), deleted, of(t, deleted, 1, v1alpha1.ReleaseRunning), ofNew},
		WithReactors: []clientgotesting.ReactionFunc{func(a clientgotesting.Action) (bool, runtime.Object, error) {
			return a.GetVerb() == "get", workloadinformertest.Unstructured(t, created), nil
		}},
	}
	row.Test(t, newTestReconciler)
}

func TestAReadmissionWithoutEffectIsNotRepeatedAtOnce(t *testing.T) {
	row := rtesting.TableRow{Objects: []runtime.Object{optedIn("default"), sleep(t, "")}}
	r, actions, _ := newTestReconciler(t, &row)
	for range 3 {
		if requeue, after := controller.IsRequeueKey(r.Reconcile(context.Background(), "default/Deployment.apps:sleep")); !requeue || after <= 0 {
			t.Fatalf("want to be queued again after a pause, got %v, %s", requeue, after)
		}
	}
	all, err := actions.ActionsByVerb()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Patches) != 1 {
		t.Errorf("readmitted %d times, want once", len(all.Patches))
	}
}

func TestTheTimeOfEarlierReleasesBeginsAgainAfterAnOptIn(t *testing.T) {
	generic, _, _ := newTestReconciler(t, &rtesting.TableRow{})
	r := generic.(*Reconciler)
	known, clock := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), clocktesting.NewFakePassiveClock(now)
	r.namespaces, r.clock = corelisters.NewNamespaceLister(known), clock
	out := optedIn("default")
	out.Labels = nil
	for _, step := range []struct {
		after     time.Duration
		namespace *corev1.Namespace
		want      time.Duration
	}{
		{0, optedIn("default"), 0}, {time.Minute, optedIn("default"), 0}, {2 * time.Minute, out, 0},
		{time.Hour, optedIn("default"), time.Hour}, {2 * time.Hour, optedIn("default"), time.Hour},
	} {
		clock.SetTime(now.Add(step.after))
		if err := known.Add(step.namespace); err != nil {
			t.Fatal(err)
		}
		in, err := r.gather(workloadinformertest.Workload(t, workload.Deployment, sleep(t, "1")))
		if err != nil {
			t.Fatal(err)
		}
		if in.OptedIn && !in.DecidingSince.Equal(now.Add(step.want)) {
			t.Errorf("%s: decides since %s, want %s", step.after, in.DecidingSince.Sub(now), step.want)
		}
	}
}
