package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	"knative.dev/pkg/controller"
	fakedynamicclient "knative.dev/pkg/injection/clients/dynamicclient/fake"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

// broker records what it accepts, or answers with an error.
type broker struct {
	accepted []cloudevents.Event
	err      error
}

func (b *broker) Deliver(_ context.Context, e cloudevents.Event) error {
	if b.err == nil {
		b.accepted = append(b.accepted, e)
	}
	return b.err
}

type fixture struct {
	*Reconciler
	ctx    context.Context
	broker *broker
	events *record.FakeRecorder
}

// newFixture has Deployment web with a request, and the Kubernetes Event web.1.
func newFixture(t *testing.T, request string) fixture {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	workloadinformertest.Add(ctx, t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "d", Annotations: map[string]string{v1alpha1.ReplayRequestAnnotation: request},
	}})
	f := fixture{ctx: ctx, broker: &broker{}, events: record.NewFakeRecorder(10)}
	f.Reconciler = &Reconciler{
		kube: fake.NewClientset(letter(t, finished("default", web), keys)), dynamic: fakedynamicclient.Get(ctx),
		workloads: workloadinformertest.Run(ctx, t), requested: hasRequest,
		sender: f.broker, verifier: keys, recorder: f.events, clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)),
	}
	if err := f.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	return f
}

func hasRequest(obj any) bool {
	w, ok := obj.(*workload.Workload)
	return ok && w.Annotations[v1alpha1.ReplayRequestAnnotation] != ""
}

func (f fixture) reconcile() error {
	return f.Reconcile(f.ctx, workloadinformer.QueueKey(workload.Deployment, "default", "web").String())
}

// request returns the request of the workload at the API server.
func (f fixture) request(t *testing.T) string {
	t.Helper()
	u, err := f.dynamic.Resource(workload.Deployment.GroupVersionResource()).Namespace("default").Get(f.ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetAnnotations()[v1alpha1.ReplayRequestAnnotation]
}

func TestARequestedEventIsSentOnceAndMarked(t *testing.T) {
	f := newFixture(t, "web.1,web.1")
	if err := f.reconcile(); err != nil || f.request(t) != "" {
		t.Fatalf("error %v, the request is %q", err, f.request(t))
	}
	want := map[string]any{eventsigning.ReplayExtension: "web.1"} // the sender adds the signature
	if len(f.broker.accepted) != 1 || !maps.Equal(f.broker.accepted[0].Extensions(), want) {
		t.Errorf("the Broker got %v, want one event with %v", f.broker.accepted, want)
	}
	k, err := f.kube.CoreV1().Events("default").Get(t.Context(), "web.1", metav1.GetOptions{})
	if err != nil || k.Annotations[v1alpha1.ReplayedAnnotation] == "" {
		t.Errorf("the Kubernetes Event is not marked: %v, %v", k, err)
	}
}

// The Broker gets the event by HTTP, as its functions do.
func TestTheSignatureOfAReplayedEventSurvivesTheBroker(t *testing.T) {
	received := make(chan *cloudevents.Event, 1)
	ingress := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil {
			t.Error(err)
		}
		received <- e
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(ingress.Close)
	next := eventsigning.Keys{Current: []byte("the next key")}
	sender := delivery.NewSender(delivery.NewTarget(clock.RealClock{}, func(context.Context) (delivery.Endpoint, error) {
		return delivery.Endpoint{URL: ingress.URL}, nil
	}), delivery.Options{Signer: next})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- sender.Run(ctx) }()
	f := newFixture(t, "web.1")
	f.sender = sender
	if err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	e := <-received
	if err := next.Verify(t.Context(), *e); err != nil || e.ID() != finished("default", web).ID() {
		t.Errorf("event %s: %v", e.ID(), err)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestARequestStaysUntilTheBrokerAcceptsTheEvent(t *testing.T) {
	f := newFixture(t, "web.1")
	f.broker.err = errors.New("connection refused")
	if err := f.reconcile(); err == nil || controller.IsPermanentError(err) || f.request(t) == "" {
		t.Fatalf("error %v, request %q: the replay would not be repeated", err, f.request(t))
	}
	f.broker.err = nil
	if err := f.reconcile(); err != nil || len(f.broker.accepted) != 1 || f.request(t) != "" {
		t.Errorf("error %v, accepted %d", err, len(f.broker.accepted))
	}
}

func TestAReplayThatIsImpossibleIsDroppedWithAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		request, want string
		err           error
	}{
		"a name that does not exist":  {"other", "does not exist", nil},
		"an event that is not wanted": {"web.1", "403", &delivery.StatusError{Code: 403}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.request)
			f.broker.err = tc.err
			if err := f.reconcile(); err != nil {
				t.Fatal(err)
			}
			if got := <-f.events.Events; !strings.Contains(got, v1alpha1.ReasonReplayDropped) || !strings.Contains(got, tc.want) {
				t.Errorf("recorded %q, want %q", got, tc.want)
			}
			if f.request(t) != "" {
				t.Error("the request was not removed")
			}
		})
	}
}

// kubectl writes names of several namespaces like this.
func TestANameWithANamespaceDoesNotPreventTheOtherReplays(t *testing.T) {
	f := newFixture(t, "default/web.1, web.1")
	// The fake client would send every name.
	f.kube.(*fake.Clientset).PrependReactor("get", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if msgs := rest.IsValidPathSegmentName(a.(clienttesting.GetAction).GetName()); len(msgs) > 0 {
			return true, nil, fmt.Errorf("invalid resource name: %v", msgs)
		}
		return false, nil, nil
	})
	if err := f.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := <-f.events.Events; !strings.Contains(got, v1alpha1.ReasonReplayDropped) || !strings.Contains(got, `"default/web.1": this is not the name`) {
		t.Errorf("recorded %q", got)
	}
	if len(f.broker.accepted) != 1 || f.request(t) != "" {
		t.Errorf("accepted %d, the request is %q", len(f.broker.accepted), f.request(t))
	}
}

// A policy may deny with the same status as a test of the patch that fails.
func TestARequestWhoseRemovalIsDeniedIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		current map[string]string
		again   bool
	}{
		"the same request": {map[string]string{v1alpha1.ReplayRequestAnnotation: "web.1"}, true},
		"a newer request":  {map[string]string{v1alpha1.ReplayRequestAnnotation: "web.2"}, false},
		"no request":       {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "web.1")
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web", UID: "d", Annotations: tc.current,
			}})
			client.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
			})
			f.dynamic = client
			if err := f.reconcile(); apierrs.IsInvalid(err) != tc.again || (err != nil) != tc.again {
				t.Errorf("error %v, want one that is tried again: %t", err, tc.again)
			}
		})
	}
}

func TestOnlyTheLeaderReplays(t *testing.T) {
	f := newFixture(t, "web.1")
	f.Demote(reconciler.UniversalBucket())
	if err := f.reconcile(); !controller.IsSkipKey(err) || len(f.broker.accepted) > 0 {
		t.Errorf("error %v, sent %d", err, len(f.broker.accepted))
	}
}

func TestARequestHasFewNames(t *testing.T) {
	value := strings.Repeat("a,", 2*v1alpha1.MaxReplays)
	if n := len(v1alpha1.ReplayRequestOf(map[string]string{v1alpha1.ReplayRequestAnnotation: value})); n != v1alpha1.MaxReplays {
		t.Errorf("%d names", n)
	}
}
