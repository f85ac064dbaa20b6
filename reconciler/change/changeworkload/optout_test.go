package changeworkload

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// The deadlines of the order pass during the opt-out, in which no call is made.
func TestAfterAnOptInTheServerIsAskedBeforeAnOrderIsNotAccepted(t *testing.T) {
	begun := time.Now() // conditions have the real time of their transition
	for name, order := range map[string]*v1alpha1.Order{
		"the server was not called": nil,
		"the server did not answer": {RequestedTime: &metav1.Time{Time: begun}},
	} {
		t.Run(name, func(t *testing.T) {
			version := strings.Repeat("0", 32)
			ctx, r, _ := newTestReconciler(t, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: "web", UID: "d", ResourceVersion: "7", Labels: map[string]string{v1alpha1.VersionKey: version},
					Annotations: map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "2"},
				},
				Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
			})
			clock, sent := clocktesting.NewFakePassiveClock(begun), &outbox{}
			r.clock, r.wakeups, r.calls, r.sender, r.serverConfigured = clock, resend.New(clock), callqueue.New(clock), sent, func() bool { return true }
			releases := changeclient.Get(ctx).AppV1alpha1().ChangeWorkloads("default")
			if _, err := releases.Create(ctx, &v1alpha1.ChangeWorkload{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web--x--" + version, UID: "c", Finalizers: []string{v1alpha1.OrderFinalizer}},
				Spec: v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: 2,
					WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d"}},
				Status: v1alpha1.ChangeWorkloadStatus{Order: order},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			// after reconciles at a time of an opted-in or opted-out namespace, and returns the release.
			after := func(d time.Duration, label string) *v1alpha1.ChangeWorkload {
				clock.SetTime(begun.Add(d))
				add(t, namespaceinformer.Get(ctx).Informer().GetIndexer(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: label},
				}})
				c, err := releases.Get(ctx, "web--x--"+version, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if err = r.ReconcileKind(ctx, c); err != nil {
					if again, _ := controller.IsRequeueKey(err); !again {
						t.Fatal(err)
					}
				}
				if c, err = releases.Get(ctx, c.Name, metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
				return c
			}
			const in, out = v1alpha1.NamespaceEnabled, "disabled"
			after(0, in)
			after(time.Second, in) // with the step and condition that were written
			after(time.Minute, out)
			sent.sent = nil
			const optIn = time.Hour
			for _, at := range []time.Duration{optIn, optIn + resend.RetrieveGrace - time.Second} {
				if c := after(at, in); c.Status.OrderAbandoned() || !slices.Contains(sent.sent, events.TypeOrderReady) {
					t.Errorf("%s: the order is abandoned %t, sent %q", at, c.Status.OrderAbandoned(), sent.sent)
				}
			}
			if c := after(optIn+settings.Default().SubmitTimeout, in); !c.Status.OrderAbandoned() {
				t.Error("the order is not abandoned at the end of the extended deadline")
			}
		})
	}
}
