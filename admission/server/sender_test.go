package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"knative.dev/pkg/client/injection/ducks/duck/v1/addressable"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
)

func TestATerminatingProcessWaitsUntilItsEventsAreAccepted(t *testing.T) {
	received, answer := make(chan struct{}), make(chan struct{})
	ingress := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(received)
		<-answer
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(ingress.Close)
	target := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
		"metadata": map[string]any{"namespace": v1alpha1.SystemNamespace, "name": "default"},
		"status":   map[string]any{"address": map[string]any{"url": ingress.URL}},
	}}
	reference := configmap.NewStaticWatcher(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: broker.ConfigName},
		Data: map[string]string{
			"apiVersion": target.GetAPIVersion(), "kind": target.GetKind(), "namespace": target.GetNamespace(), "name": target.GetName(),
		},
	})
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), target)
	ctx, end := context.WithCancel(addressable.WithDuck(context.WithValue(t.Context(), dynamicclient.Key{}, client)))
	defer end()

	var p Process
	var accepted atomic.Bool
	e := cloudevents.NewEvent()
	e.SetID("1")
	e.SetSource("test")
	e.SetType("test")
	p.NewSender(ctx, reference).SendAndConfirm(ctx, e, func() { accepted.Store(true) })
	select {
	case <-received:
	case <-time.After(time.Minute):
		t.Fatal("no event received within a minute")
	}
	end()
	close(answer)
	p.running.Wait()
	if !accepted.Load() {
		t.Error("the process ended before the Broker accepted an event")
	}
}
