package functions_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The limit of Knative counts requests whose body does not arrive, which any pod can send.
func TestSlowBodiesTakeNoPlaceOfAnEvent(t *testing.T) {
	services := append(manifests[map[string]any](t, "6[0-3]0-*.yaml", "Service"), manifests[map[string]any](t, "../judge/600-*.yaml", "Service")...)
	services = append(services, manifests[map[string]any](t, "../notify/600-*.yaml", "Service")...)
	for _, service := range services {
		name, _, _ := unstructured.NestedString(service, "metadata", "name")
		limit, set, err := unstructured.NestedFieldNoCopy(service, "spec", "template", "spec", "containerConcurrency")
		if n, ok := limit.(float64); err != nil || !set || !ok || n != 0 {
			t.Errorf("%s: %v slow bodies of one pod keep all events waiting", name, limit)
		}
	}
}

func TestMoreEventsThanTheLimitWait(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	r := receiver(t, func(context.Context, event.Event) error {
		begun <- struct{}{}
		<-end
		return nil
	})
	serve := func(ctx context.Context) <-chan int {
		answer := make(chan int, 1)
		go func() {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, binary("{}").WithContext(ctx))
			answer <- w.Code
		}()
		return answer
	}
	var first []<-chan int
	for range limit {
		first = append(first, serve(t.Context()))
		<-begun
	}
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	if got := <-serve(ctx); got != http.StatusServiceUnavailable {
		t.Errorf("an event whose sender no longer waits was answered with %d", got)
	}
	last := serve(t.Context())
	end <- struct{}{}
	<-begun // the last event follows the end of another one
	close(end)
	for _, answer := range append(first, last) {
		if got := <-answer; got != http.StatusOK {
			t.Errorf("an event was answered with %d", got)
		}
	}
}
