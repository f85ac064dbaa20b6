package opsconfiginfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	kuberecord "k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	fakechangeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	fakeopsconfiginfo "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo/fake"
	reconcileropsconfiginfo "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/opsconfiginfo"
)

// recordedData is the key of the ConfigMap's data in TableRow.OtherTestData.
const recordedData = "recorded"

// newReconciler returns a Reconciler with a cache and a fake API server that have the
// objects of the row.
func newReconciler(t *testing.T, row *rtesting.TableRow) (controller.Reconciler, rtesting.ActionRecorderList, rtesting.EventList) {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	kube, client, informer := fakekubeclient.Get(ctx), fakechangeclient.Get(ctx), fakeopsconfiginfo.Get(ctx)
	recorded := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: installedName}}
	recorded.Data, _ = row.OtherTestData[recordedData].(map[string]string)
	if err := kube.Tracker().Add(recorded); err != nil {
		t.Fatal(err)
	}
	for _, o := range row.Objects {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
		if err := informer.Informer().GetIndexer().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, reactor := range row.WithReactors {
		client.PrependReactor("*", "*", reactor)
	}
	recorder := kuberecord.NewFakeRecorder(10)
	r := reconcileropsconfiginfo.NewReconciler(ctx, logging.FromContext(ctx), client, informer.Lister(), recorder, &Reconciler{
		client: client, lister: informer.Lister(),
		installed: watchInstalled(configmap.NewStaticWatcher(recorded), kube),
		clock:     clocktesting.NewFakePassiveClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)),
	}, controller.Options{SkipStatusUpdates: true})
	if err := r.(reconciler.LeaderAware).Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return r, rtesting.ActionRecorderList{kube, client}, rtesting.EventList{Recorder: recorder}
}

func patchOf(name, body string) clientgotesting.PatchActionImpl {
	p := clientgotesting.PatchActionImpl{Name: name, Patch: []byte(body)}
	p.Namespace = v1alpha1.SystemNamespace
	return p
}

const system = v1alpha1.SystemNamespace + "/"

var done = map[string]any{recordedData: map[string]string{"blocking": "2026-01-01T00:00:00Z", "branch": "2026-01-01T00:00:00Z"}}

func TestReconcile(t *testing.T) {
	created := func(name string, spec v1alpha1.OpsConfigInfoSpec) *v1alpha1.OpsConfigInfo {
		return &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}, Spec: spec}
	}
	off := v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBlocking}
	marked := object("mine", 1, off)
	marked.Status.ObservedGeneration = 1
	marked.MarkApplied("off: a failed check suspends nothing")
	marked.Status.Conditions[0].LastTransitionTime.Inner = metav1.NewTime(time.Unix(1700000000, 0))
	edited := marked.DeepCopy()
	edited.Generation, edited.Spec.Enable = 2, true

	rtesting.TableTest{{
		Name: "default isBlockingUp is created",
		Key:  system + "blocking",
		WantCreates: []runtime.Object{created("blocking", v1alpha1.OpsConfigInfoSpec{
			Type: "isBlockingUp", Enable: true, Remark: "是否开启阻断"})},
		WantPatches: []clientgotesting.PatchActionImpl{patchOf(installedName, `{"data":{"blocking":"2026-02-03T04:05:06Z"}}`)},
	}, {
		Name: "default isBranch is created",
		Key:  system + "branch",
		WantCreates: []runtime.Object{created("branch", v1alpha1.OpsConfigInfoSpec{
			Type: "isBranch", Content: "10", Remark: "是否开启批量防控"})},
		WantPatches: []clientgotesting.PatchActionImpl{patchOf(installedName, `{"data":{"branch":"2026-02-03T04:05:06Z"}}`)},
	}, {
		Name: "a deleted default is not created again", Key: system + "blocking",
		OtherTestData: done,
	}, {
		Name: "other name", Key: system + "other",
	}, {
		Name: "name of a default in another namespace", Key: "default/blocking",
	}, {
		Name: "a user's object of the type replaces the default", Key: system + "blocking",
		Objects:     []runtime.Object{object("mine", 1, off)},
		WantPatches: []clientgotesting.PatchActionImpl{patchOf(installedName, `{"data":{"blocking":"2026-02-03T04:05:06Z"}}`)},
	}, {
		Name: "a failed creation is retried", Key: system + "blocking",
		WithReactors: []clientgotesting.ReactionFunc{func(a clientgotesting.Action) (bool, runtime.Object, error) {
			return a.GetVerb() == "create", nil, apierrs.NewTimeoutError("the webhook is not up", 1)
		}},
		WantCreates: []runtime.Object{created("blocking", v1alpha1.OpsConfigInfoSpec{
			Type: "isBlockingUp", Enable: true, Remark: "是否开启阻断"})},
		WantErr: true, // asks to be queued again
	}, {
		Name: "a current status is not written", Key: system + "mine",
		OtherTestData: done, Objects: []runtime.Object{marked},
	}}.Test(t, newReconciler)

	t.Run("a change of the effect is written to the status and as an Event", func(t *testing.T) {
		row := rtesting.TableRow{Key: system + "mine", OtherTestData: done, Objects: []runtime.Object{edited},
			WithReactors: []clientgotesting.ReactionFunc{func(a clientgotesting.Action) (bool, runtime.Object, error) {
				return a.GetVerb() == "patch", edited, nil
			}}}
		r, actions, emitted := newReconciler(t, &row)
		if err := r.Reconcile(t.Context(), row.Key); err != nil {
			t.Fatal(err)
		}
		all, err := actions.ActionsByVerb()
		if err != nil || len(all.Patches) != 1 || len(all.Updates) != 0 {
			t.Fatalf("want one patch, got %+v, %v", all, err)
		}
		if p := all.Patches[0]; p.GetSubresource() != "status" || p.GetPatchType() != types.MergePatchType {
			t.Errorf("want an apply on /status, got %s on %q", p.GetPatchType(), p.GetSubresource())
		}
		want := []string{"Normal Applied on: a failed check suspends the workload"}
		if diff := cmp.Diff(want, emitted.Events()); diff != "" {
			t.Error("(-want +got):", diff)
		}
	})
}

func TestDefaultObjectsAreReconciledWithoutAnEvent(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	impl := NewController(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: installedName}}))
	got := map[any]bool{}
	for range defaultKeys() { // the length of the queue does not include keys that are being added
		key, _ := impl.WorkQueue().Get()
		got[key] = true
		impl.WorkQueue().Done(key)
	}
	want := map[any]bool{}
	for _, key := range defaultKeys() {
		want[key] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}
