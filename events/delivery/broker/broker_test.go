package broker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/client/injection/ducks/duck/v1/addressable"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/resolver"
	"knative.dev/pkg/tracker"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

func brokers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "brokers"}
}

func TestEventsGoToTheBrokerInTheConfigMap(t *testing.T) {
	c := newCluster(t)
	one, two := newReceiver(t), newReceiver(t)
	c.create(t, broker("one", one.URL))
	c.create(t, broker("two", two.URL))
	sender := c.start(t, "one")

	sender.Send(t.Context(), event(t, "a"))
	one.wait(t)

	c.configure("two")
	c.eventually(t, func() bool {
		sender.Send(t.Context(), event(t, "b"))
		return two.count.Load() > 0
	})
}

func TestQueuedEventsAreSentWhenTheBrokerIsCreated(t *testing.T) {
	c := newCluster(t)
	receiver := newReceiver(t)
	sender := c.start(t, "late")

	sender.Send(t.Context(), event(t, "a"))
	if err := sender.Deliver(t.Context(), event(t, "b")); err == nil {
		t.Error("Deliver returned no error without a Broker")
	}
	watching(t, &c.dynamic.Fake, "brokers")
	c.create(t, broker("late", ""))
	c.create(t, broker("other", receiver.URL))
	if n := receiver.count.Load(); n != 0 {
		t.Fatalf("received %d events without a Broker", n)
	}
	c.update(t, broker("late", receiver.URL))
	receiver.wait(t)
}

func TestEventsStayQueuedWithoutKnativeEventing(t *testing.T) {
	c := newCluster(t)
	receiver := newReceiver(t)
	var installed atomic.Bool
	var lists atomic.Int32
	c.dynamic.PrependReactor("list", "brokers", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists.Add(1)
		return !installed.Load(), nil, apierrors.NewNotFound(brokers().GroupResource(), "")
	})
	c.create(t, broker("default", receiver.URL))
	sender := c.start(t, "default")

	sender.Send(t.Context(), event(t, "a"))
	c.eventually(t, func() bool { return lists.Load() > 2 })
	if n := receiver.count.Load(); n != 0 {
		t.Fatalf("received %d events without Knative Eventing", n)
	}
	installed.Store(true)
	c.eventually(t, func() bool { return receiver.count.Load() == 1 })
}

func TestTheConfigMapMayBeCreatedLater(t *testing.T) {
	c := newCluster(t)
	receiver := newReceiver(t)
	c.create(t, broker("default", receiver.URL))
	kube := fake.NewClientset()
	watcher := informer.NewInformedWatcher(kube, v1alpha1.SystemNamespace)
	sender := NewSender(c.ctx, watcher, delivery.Options{Clock: c.clock})
	if err := watcher.Start(t.Context().Done()); err != nil {
		t.Fatal(err)
	}
	run(t, sender)
	sender.Send(t.Context(), event(t, "a"))
	delivered := make(chan error, 1)
	go func() { delivered <- sender.Deliver(t.Context(), event(t, "b")) }()
	c.eventually(t, func() bool { return len(delivered) == 1 })
	var noBroker *delivery.NoBrokerError
	if err := <-delivered; !errors.As(err, &noBroker) {
		t.Errorf("Deliver without a ConfigMap: %v", err)
	}
	watching(t, &kube.Fake, "configmaps")
	if _, err := kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Create(t.Context(), configMap("default"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	receiver.wait(t)
}

func TestAnInvalidReferenceDoesNotReplaceAValidOne(t *testing.T) {
	f := newFinder(clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)))
	if err := f.setReference(configMap("valid")); err != nil {
		t.Fatal(err)
	}
	invalid := configMap("valid")
	invalid.Data["kind"] = "not a kind"
	if err := f.setReference(invalid); err == nil {
		t.Error("no error for an invalid reference")
	}
	if f.err != nil || f.ref.Name != "valid" {
		t.Errorf("reference is %v, %v", f.ref, f.err)
	}
	if err := f.setReference(&corev1.ConfigMap{}); err != nil || f.err == nil {
		t.Errorf("the reference is still set after the ConfigMap was deleted: %v, %v", f.ref, f.err)
	}
}

// cluster has the objects that a sender reads.
type cluster struct {
	ctx     context.Context
	clock   *clocktesting.FakeClock
	dynamic *dynamicfake.FakeDynamicClient
	config  *configmap.ManualWatcher
}

func newCluster(t *testing.T) *cluster {
	scheme := runtime.NewScheme()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme,
		map[schema.GroupVersionResource]string{brokers(): "BrokerList"})
	ctx := context.WithValue(t.Context(), dynamicclient.Key{}, client)
	return &cluster{
		ctx:     addressable.WithDuck(ctx),
		clock:   clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)),
		dynamic: client,
		config:  &configmap.ManualWatcher{Namespace: v1alpha1.SystemNamespace},
	}
}

// start returns a running sender to the Broker with the name.
func (c *cluster) start(t *testing.T, name string) *delivery.Sender {
	t.Helper()
	sender := NewSender(c.ctx, c.config, delivery.Options{Clock: c.clock})
	c.configure(name)
	run(t, sender)
	return sender
}

// run runs the sender until the test ends, and waits for its end.
func run(t *testing.T, sender *delivery.Sender) {
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- sender.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

func (c *cluster) configure(name string) { c.config.OnChange(configMap(name)) }

func (c *cluster) create(t *testing.T, b *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.dynamic.Resource(brokers()).Namespace(b.GetNamespace()).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) update(t *testing.T, b *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.dynamic.Resource(brokers()).Namespace(b.GetNamespace()).Update(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// eventually advances the clock until the condition holds.
func (c *cluster) eventually(t *testing.T, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			if c.clock.HasWaiters() {
				c.clock.Step(time.Minute)
			}
			return holds(), nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// watching waits until a resource is watched: a fake client loses changes between the list and
// the watch.
func watching(t *testing.T, client *clienttesting.Fake, resource string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", resource) }), nil
	})
	if err != nil {
		t.Fatalf("%s are not watched: %v", resource, err)
	}
}

// receiver is the ingress of a Broker.
type receiver struct {
	*httptest.Server
	count    atomic.Int32
	received chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{received: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.count.Add(1)
		w.WriteHeader(http.StatusAccepted)
		select {
		case r.received <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// wait waits for an event.
func (r *receiver) wait(t *testing.T) {
	t.Helper()
	select {
	case <-r.received:
	case <-time.After(time.Minute):
		t.Fatal("no event received within a minute")
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: ConfigName},
		Data: map[string]string{
			"apiVersion": "eventing.knative.dev/v1",
			"kind":       "Broker",
			"namespace":  v1alpha1.SystemNamespace,
			"name":       name,
		},
	}
}

// broker returns a Broker. Without an address it is not ready.
func broker(name, address string) *unstructured.Unstructured {
	b := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "eventing.knative.dev/v1",
		"kind":       "Broker",
		"metadata":   map[string]any{"namespace": v1alpha1.SystemNamespace, "name": name},
	}}
	if address != "" {
		b.Object["status"] = map[string]any{"address": map[string]any{"url": address}}
	}
	return b
}

func event(t *testing.T, pod string) cloudevents.Event {
	t.Helper()
	e, err := events.New(events.PodFinished{
		Namespace: "default",
		Pod:       pod,
		PodUID:    types.UID("uid-" + pod),
		Workload:  events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"},
		Version:   "v",
		Attempt:   1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestABrokerWithAnAudienceRequiresAToken(t *testing.T) {
	for name, want := range map[string]string{"": "", "eventing.knative.dev/broker/altershieldoperator-system/default": tokenFile} {
		b := broker("default", "http://broker.example")
		if name != "" {
			_ = unstructured.SetNestedField(b.Object, name, "status", "address", "audience")
		}
		c := newCluster(t)
		c.create(t, b)
		f := newFinder(c.clock)
		f.addresses = resolver.NewURIResolverFromTracker(c.ctx, tracker.New(func(types.NamespacedName) {}, time.Hour))
		if err := f.setReference(configMap("default")); err != nil {
			t.Fatal(err)
		}
		if e, err := f.find(t.Context()); err != nil || e.TokenFile != want {
			t.Errorf("audience %q: token file %q, %v; want %q", name, e.TokenFile, err, want)
		}
	}
}
