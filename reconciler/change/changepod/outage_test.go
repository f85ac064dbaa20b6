package changepod

import (
	"context"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	fakechangeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// wakeUpCounter counts events.
type wakeUpCounter struct{ n int }

func (s *wakeUpCounter) Send(context.Context, cloudevents.Event) { s.n++ }

// While the API server is unreachable, the process loses its Leases; the timeout of the stage
// passes, and the callback is lost.
func TestAfterAnOutageOfTheAPIServerTheServerIsAskedBeforeABatchIsUnjudged(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(t0)
	ctx, cancel, informers := rtesting.SetupFakeContextWithCancel(t, func(ctx context.Context) context.Context { return contextclock.With(ctx, clock) })
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}
	release := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "release"}}
	release.Spec = v1alpha1.ChangeWorkloadSpec{Reversion: "0123456789abcdef0123456789abcdef", Attempt: 1}
	c := batch(submission(v1alpha1.StagePre, true))
	c.Namespace, c.UID, c.ResourceVersion, c.Spec.ChangeWorkloadID = "default", "u", "1", release.Name
	client := fakechangeclient.Get(ctx)
	if err := fakekubeclient.Get(ctx).Tracker().Add(ns); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Add(release); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Add(c); err != nil {
		t.Fatal(err)
	}
	wakeUps := &wakeUpCounter{}
	impl := NewController(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: altershield.ConfigMapName}, Data: map[string]string{"base-url": "https://server.example"},
	}), wakeUps, callqueue.New(clock))
	stopped, err := rtesting.RunAndSyncInformers(ctx, informers...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); stopped() }()
	leader, ok := impl.Reconciler.(reconciler.LeaderAware)
	if !ok {
		t.Fatalf("a %T is not leader-aware", impl.Reconciler)
	}
	promote := func() {
		if err := leader.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
			t.Fatal(err)
		}
	}
	reconcileAt := func(after time.Duration) v1alpha1.BatchPhase {
		t.Helper()
		clock.SetTime(t0.Add(after))
		if err := impl.Reconciler.Reconcile(ctx, c.Namespace+"/"+c.Name); err != nil {
			if again, _ := controller.IsRequeueKey(err); !again {
				t.Fatal(err)
			}
		}
		got, err := client.AppV1alpha1().ChangePods(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status.Phase
	}
	const outage = 10 * time.Minute
	promote()
	reconcileAt(time.Second)
	leader.Demote(reconciler.UniversalBucket())
	promote()
	before := wakeUps.n
	if got := reconcileAt(outage); got == v1alpha1.BatchExecuteDone || wakeUps.n == before {
		t.Errorf("phase %q just after the outage; function submit was woken %d times", got, wakeUps.n-before)
	}
	if got := reconcileAt(outage + resend.RetrieveGrace); got != v1alpha1.BatchExecuteDone {
		t.Errorf("phase %q after the grace", got)
	}
}
