package changeworkload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	"knative.dev/pkg/configmap"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo/fake"
	changelisters "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

func TestPodsOfASupersededSuccessDoNotMatter(t *testing.T) {
	const success = v1alpha1.ReleaseSuccess
	tests := map[string]struct {
		phase   v1alpha1.ReleasePhase
		attempt int64
		uid     types.UID // of the workload in its spec
		unknown bool
		want    bool
	}{
		"it runs":                                    {phase: v1alpha1.ReleaseRunning, attempt: 2, uid: "d", want: true},
		"it succeeded and is current":                {phase: success, attempt: 2, uid: "d", want: true},
		"it succeeded and was replaced":              {phase: success, attempt: 1, uid: "d"},
		"it was superseded before its end":           {phase: v1alpha1.ReleaseFailed, attempt: 1, uid: "d", want: true},
		"the cache of workloads is stale":            {phase: success, attempt: 3, uid: "d", want: true},
		"its workload is an earlier one of the name": {phase: success, attempt: 1, uid: "former", want: true},
		"its ChangeWorkload is not cached yet":       {unknown: true, want: true},
		"it was held and a repair replaced it":       {phase: v1alpha1.ReleaseSuspend, attempt: 1, uid: "d", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, _ := rtesting.SetupFakeContext(t)
			workloadinformertest.Add(ctx, t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web", UID: "d",
				Labels:      map[string]string{v1alpha1.VersionKey: "v"},
				Annotations: map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2"},
			}})
			all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if !tc.unknown {
				c := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web--x--v"}}
				c.Spec = v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: tc.attempt, WorkloadRef: v1alpha1.WorkloadRef{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: tc.uid,
				}}
				c.Status.Phase = tc.phase
				if err := all.Add(c); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{lister: changelisters.NewChangeWorkloadLister(all), workloads: workloadinformertest.Run(ctx, t)}
			if got := r.dependsOnPods(types.NamespacedName{Namespace: "default", Name: "web--x--v"}); got != tc.want {
				t.Errorf("matter: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyProgressOfARolloutIsDelayed(t *testing.T) {
	base := func() *workload.Workload {
		return &workload.Workload{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 2, Labels: map[string]string{"a": "b"}}, InProgress: true}
	}
	for name, tc := range map[string]struct {
		change func(*workload.Workload)
		want   bool
	}{
		"the status changed":        {func(w *workload.Workload) { w.ResourceVersion = "2" }, true},
		"the rollout is complete":   {func(w *workload.Workload) { w.Complete = true }, false},
		"the template was replaced": {func(w *workload.Workload) { w.InProgress = false }, false},
		"the spec changed":          {func(w *workload.Workload) { w.Generation = 3 }, false},
		"a label changed":           {func(w *workload.Workload) { w.Labels["a"] = "c" }, false},
		"an annotation was added":   {func(w *workload.Workload) { w.Annotations = map[string]string{"a": "b"} }, false},
		"it is terminating":         {func(w *workload.Workload) { w.DeletionTimestamp = &metav1.Time{} }, false},
		"it was created again":      {func(w *workload.Workload) { w.UID = "other" }, false},
	} {
		after := base()
		tc.change(after)
		if got := progressOnly(base(), after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTheControllerDecidesAnewAfterItLostItsLastBucket(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	impl := NewController(ctx, configmap.NewStaticWatcher(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: altershield.ConfigMapName}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: workload.ConfigMapName}},
	), &outbox{}, callqueue.New(clocktesting.NewFakePassiveClock(t0)))
	d, ok := impl.Reconciler.(deletionReconciler)
	if !ok {
		t.Fatalf("the reconciler is a %T", impl.Reconciler)
	}
	since := &d.reconciler.decidingSince
	promote := func() {
		if err := d.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
			t.Fatal(err)
		}
	}
	promote()
	since.Get(t0)
	d.Demote(reconciler.UniversalBucket())
	promote()
	if again := t0.Add(time.Hour); !since.Get(again).Equal(again) {
		t.Errorf("it decides since %s, want since %s", since.Get(again), again)
	}
}
