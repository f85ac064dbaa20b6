package changeworkload

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/controller"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

// newTestReconciler returns a Reconciler whose caches have the Deployment with the current ReplicaSet
// web-1, a context with its fake clients and informers, and the recorder of its Events.
func newTestReconciler(t *testing.T, d *appsv1.Deployment) (context.Context, *Reconciler, *record.FakeRecorder) {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	events := record.NewFakeRecorder(10)
	ctx = controller.WithEventRecorder(ctx, events)
	workloadinformertest.Add(ctx, t, d)
	r, err := newReconciler(ctx, &outbox{}, callqueue.New(clocktesting.NewFakePassiveClock(t0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := releasefinder.Index(changepodinformer.Get(ctx).Informer()); err != nil {
		t.Fatal(err)
	}
	r.settings, r.serverConfigured = settings.Default, func() bool { return false }
	workloadinformertest.Run(ctx, t)
	add(t, namespaceinformer.Get(ctx).Informer().GetIndexer(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled},
	}})
	add(t, replicasetinformer.Get(ctx).Informer().GetIndexer(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", UID: "r", Annotations: d.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID, Controller: new(true)}},
	}})
	return ctx, r, events
}

// add adds an object to a cache, or replaces it.
func add(t *testing.T, to cache.Indexer, o any) {
	t.Helper()
	if err := to.Update(o); err != nil {
		t.Fatal(err)
	}
}
