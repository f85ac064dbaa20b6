//go:build controlplane

package cost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/functions/report"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
)

// platform and token are the platform and the token that the server accepts.
const platform, token = "breakwater", "secret"

// serve starts the functions, the Broker and the server, and configures Breakwater for them.
func serve(t *testing.T, c *clients.Clients) {
	t.Helper()
	b := &brokerDouble{subscribers: map[string]http.Handler{}}
	address := httptest.NewServer(quiet(b))
	t.Cleanup(address.Close)

	meter := noop.Meter{}
	receive := func(name string, build func(versioned.Interface, *functions.ClientSource) functions.Function, types ...string) {
		change, source := clientsOf(t, name)
		handler := functions.NewReceiver(name, 50, build(change, source), clock.RealClock{}, meter)
		for _, eventType := range types {
			b.subscribers[eventType] = otelhttp.NewHandler(handler, name) // as package process does
		}
	}
	receive("submit", func(change versioned.Interface, source *functions.ClientSource) functions.Function {
		return submit.New(change, source, verdict.NewRecorder(change, clock.RealClock{}, meter),
			eventsigning.NewEventStore(source.Kube.CoreV1(), clock.RealClock{}), clock.RealClock{}, meter)
	}, events.TypeOrderReady, events.TypeChangePodReady)
	receive("verdict", func(change versioned.Interface, source *functions.ClientSource) functions.Function {
		recorder := verdict.NewRecorder(change, clock.RealClock{}, meter)
		recorder.SetFollower(submit.NewFinisher(change, source, clock.RealClock{}, meter))
		return verdict.New(recorder, source, eventsigning.NewVerdictStore(source.Kube.CoreV1(), clock.RealClock{}), nil)
	}, events.TypeChangePodVerdict, events.TypeOrderVerdict)
	receive("report", func(change versioned.Interface, source *functions.ClientSource) functions.Function {
		return report.New(change, source, eventsigning.NewEventStore(source.Kube.CoreV1(), clock.RealClock{}), clock.RealClock{}, meter)
	}, events.TypePodFinished, events.TypeChangeWorkloadStarted, events.TypeChangeWorkloadProgressed, events.TypeChangeWorkloadSucceeded)

	change, source := clientsOf(t, "callback")
	batches, err := callback.NewBatches(change)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = batches.Run(t.Context()) }()
	received := httptest.NewServer(quiet(callback.New(callback.Options{
		Change: change, Batches: batches, Server: source, Broker: client(address.URL),
		Signer: eventsigning.NewVerdictStore(source.Kube.CoreV1(), clock.RealClock{}), Clock: clock.RealClock{}, Meter: meter,
	})))
	t.Cleanup(received.Close)
	server := double.NewDouble(double.Options{CallbackURL: received.URL + "/openapi/altershield/callback", Tokens: map[string]string{platform: token}})
	http := httptest.NewServer(server.Handler())
	t.Cleanup(func() { http.Close(); server.Close() })

	installBroker(t, c, address.URL)
	configure(t, c, http.URL)
}

// quiet serves requests without a log.
func quiet(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(logging.WithLogger(r.Context(), zap.NewNop().Sugar())))
	})
}

// clientsOf returns the clients of a function.
func clientsOf(t *testing.T, name string) (versioned.Interface, *functions.ClientSource) {
	t.Helper()
	config := plane.As(name)
	change, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return change, functions.NewReplicaClientSource(kube, 1)
}

// brokerDouble delivers an event to its function before it answers.
type brokerDouble struct{ subscribers map[string]http.Handler }

// ServeHTTP implements http.Handler.
func (b *brokerDouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, ok := b.subscribers[r.Header.Get("Ce-Type")]
	if !ok {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := httptest.NewRecorder()
	for range 5 {
		r.Body, answer = io.NopCloser(bytes.NewReader(body)), httptest.NewRecorder()
		if to.ServeHTTP(answer, r); answer.Code < http.StatusInternalServerError {
			break
		}
	}
	w.WriteHeader(answer.Code)
}

// client sends events to the Broker for the callback.
type client string

// Deliver implements callback.Deliverer.
func (c client) Deliver(ctx context.Context, e event.Event) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(c), nil)
	if err != nil {
		return err
	}
	if err := cehttp.WriteRequest(ctx, binding.ToMessage(&e), request); err != nil {
		return err
	}
	// As in events/delivery, the context of the trace is a header.
	answer, err := (&http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return cloudevents.NewHTTPResult(answer.StatusCode, "the Broker did not accept the event")
	}
	return nil
}

// brokerCRD is the part of the CRD that the controllers need: an object with an address.
const brokerCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"brokers.eventing.knative.dev"},
"spec":{"group":"eventing.knative.dev","scope":"Namespaced","names":{"kind":"Broker","plural":"brokers","singular":"broker"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func installBroker(t *testing.T, c *clients.Clients, url string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON([]byte(brokerCRD)); err != nil {
		t.Fatal(err)
	}
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	brokers := c.Dynamic.Resource(schema.GroupVersionResource{Group: "eventing.knative.dev", Version: "v1", Resource: "brokers"}).Namespace(v1alpha1.SystemNamespace)
	broker := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": map[string]any{"name": "default"},
		"status": map[string]any{"address": map[string]any{"url": url}},
	}}
	await(t, "the Broker is created", func(ctx context.Context) error {
		_, err := brokers.Create(ctx, broker, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // of an earlier test
			_, err = brokers.Patch(ctx, "default", types.MergePatchType, []byte(fmt.Sprintf(`{"status":{"address":{"url":%q}}}`, url)), metav1.PatchOptions{})
		}
		return err
	})
}

func configure(t *testing.T, c *clients.Clients, url string) {
	t.Helper()
	secrets, configs := c.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace), c.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace)
	secret, err := secrets.Get(t.Context(), altershield.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.StringData = map[string]string{altershield.TokenKey: token}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := configs.Get(t.Context(), altershield.ConfigMapName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Data = map[string]string{
		"base-url": url, "platform": platform, "tenant-code": "t", "change-scene-key": "s", "cluster-name": "c", "qps": "1000", "burst": "1000",
	}
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
