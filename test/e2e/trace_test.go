//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The contexts of a trace that an event has as the header of its request, and as its extension.
const (
	traceOfHeader    = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceOfExtension = "00-11111111111111111111111111111111-2222222222222222-01"
)

// tracedEvents: the Broker, whose own tracing is off, delivers an event with the header traceparent of
// its sender, as Breakwater sends it, and with the extension of this name.
func tracedEvents(t *testing.T, e *environment) {
	var mu sync.Mutex
	received := map[string]http.Header{}
	address := serve(t, e.nodeAddress(t), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		received[r.Header.Get("Ce-Id")] = r.Header
	}))
	n := e.notOptedInNamespace(t)
	n.applyManifest(t, fmt.Sprintf(`{apiVersion: eventing.knative.dev/v1, kind: Broker, metadata: {name: default}}
---
{apiVersion: eventing.knative.dev/v1, kind: Trigger, metadata: {name: sink}, spec: {broker: default, subscriber: {uri: "http://%s"}}}`, address))
	n.run(t, "wait", "--for=condition=Ready", "broker/default", "trigger/sink", "--timeout=60s")
	sent := map[string]map[string]string{
		"with-header":    {"traceparent": traceOfHeader},
		"with-extension": {"ce-traceparent": traceOfExtension},
		"with-both":      {"traceparent": traceOfHeader, "ce-traceparent": traceOfExtension},
	}
	for id, headers := range sent {
		await(t, shortTimeout, "the Broker accepts event "+id, func(ctx context.Context) error { return n.sendEvent(ctx, id, headers) })
	}
	await(t, shortTimeout, "the Trigger has the events", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(received) < len(sent) {
			return fmt.Errorf("received %v", received)
		}
		return nil
	})
	mu.Lock() // an event may come twice
	defer mu.Unlock()
	for id, headers := range sent {
		for _, name := range []string{"traceparent", "ce-traceparent"} {
			if got := received[id].Get(name); got != headers[name] {
				t.Errorf("%s of event %s is %q, want %q", name, id, got, headers[name])
			}
		}
	}
}

// sendEvent sends an event to the Broker of the namespace, whose ingress may learn of it late.
func (n *namespace) sendEvent(ctx context.Context, id string, headers map[string]string) error {
	ingress, err := n.kube.CoreV1().Services(eventing).Get(ctx, "broker-ingress", metav1.GetOptions{})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+ingress.Spec.ClusterIP+"/"+n.name+"/default", bytes.NewReader([]byte("{}")))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Source": "/e2e", "Ce-Type": "test.breakwater.dev.traced"} {
		request.Header.Set(name, value)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("the Broker answered %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
