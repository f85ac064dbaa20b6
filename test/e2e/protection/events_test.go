//go:build e2e

package protection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
)

// sink receives events of one type from a Trigger of the Broker.
type sink struct {
	mu   sync.Mutex
	seen []http.Header
}

// newSink listens on the address of the node, which pods can reach.
func newSink(t *testing.T, n *namespace, eventType string) *sink {
	t.Helper()
	s := &sink{}
	listener, err := net.Listen("tcp", net.JoinHostPort(nodeAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header)
		s.mu.Unlock()
		w.WriteHeader(http.StatusOK)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	trigger := n.name
	n.cleanup(t, append(system, "delete", "trigger", trigger)...)
	n.apply(t, fmt.Sprintf(`{apiVersion: eventing.knative.dev/v1, kind: Trigger, metadata: {namespace: %s, name: %s},
 spec: {broker: default, filter: {attributes: {type: %s}}, subscriber: {uri: "http://%s/"}}}`, systemNamespace, trigger, eventType, listener.Addr()))
	n.run(t, append(system, "wait", "--for=condition=Ready", "trigger/"+trigger, "--timeout=60s")...)
	return s
}

// nodeAddress returns the address of the node that is not simulated.
func nodeAddress(t *testing.T) string {
	t.Helper()
	nodes, err := connect(t).kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=kwok"})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("no node: %v", err)
	}
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == "InternalIP" {
			return a.Address
		}
	}
	t.Fatal("the node has no address")
	return ""
}

// idsOf returns the ids of the events with a source.
func (s *sink) idsOf(source string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.seen {
		if h.Get("Ce-Source") == source {
			ids = append(ids, h.Get("Ce-Id"))
		}
	}
	return ids
}

func TestManyDenialsSendOneCloudEventPerMinute(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	s := newSink(t, n, "dev.breakwater.deletion.denied.v1")
	n.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 0"))
	source := "/apis/policy.kruise.io/v1alpha1/namespaces/" + n.name + "/podunavailablebudgets/web"
	if got := storm(t, c, n.name, n.podNames(t), 4); got.denied != 4 {
		t.Fatalf("%+v", got)
	}
	n.await(t, "an event reports the denials", func() error {
		if len(s.idsOf(source)) == 0 {
			return errors.New("no event")
		}
		return nil
	})
	for range 25 {
		storm(t, c, n.name, n.podNames(t), 4)
	}
	uid := n.run(t, "get", "pub", "web", "-o", "jsonpath={.metadata.uid}")
	minutes := map[string]bool{}
	for _, id := range s.idsOf(source) {
		if !strings.HasPrefix(id, uid+"/") || !strings.HasSuffix(id, "/denied") {
			t.Errorf("the id of an event is %s", id)
		}
		minutes[id] = true
	}
	// Each of two replicas sends one event per minute, and the denials fall into at most two minutes.
	if all := s.idsOf(source); len(all) > 4 || len(minutes) > 2 {
		t.Errorf("events of 104 denials are %q", all)
	}
}

func TestOpeningAndClosingSendCloudEvents(t *testing.T) {
	n := newNamespace(t)
	opened := newSink(t, n, "dev.breakwater.deletionflow.opened.v1")
	closed := newSink(t, newNamespace(t), "dev.breakwater.deletionflow.closed.v1")
	c := newFlowControl(t, n, "")
	source := "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols/" + c.name
	n.await(t, "an event reports that it opened", func() error {
		if len(opened.idsOf(source)) != 1 {
			return fmt.Errorf("events are %q", opened.idsOf(source))
		}
		return nil
	})
	c.setLimit(t, 5)
	n.await(t, "an event reports that it closed", func() error {
		if len(closed.idsOf(source)) != 1 {
			return fmt.Errorf("events are %q", closed.idsOf(source))
		}
		return nil
	})
}

// Denials do not wait for events, which are lost without a Broker.
func TestDenialsDoNotNeedABroker(t *testing.T) {
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	broker := func(ctx context.Context, name string) error {
		r, err := n.Run(ctx, append(system, "patch", "configmap", "config-broker", "--type=merge", "-p", `{"data":{"name":"`+name+`"}}`)...)
		if err != nil || r.Code != 0 {
			return fmt.Errorf("%s: %w", r, err)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := broker(context.Background(), "default"); err != nil {
			t.Error(err)
		}
	})
	if err := broker(t.Context(), "nowhere"); err != nil {
		t.Fatal(err)
	}
	c := connect(t)
	n.await(t, "no replica of the webhook knows a Broker", func() error {
		replicas, err := disruption.Component("protection-webhook").Pods(t.Context(), c.kube)
		if err != nil || len(replicas) == 0 {
			return fmt.Errorf("%d replicas: %w", len(replicas), err)
		}
		for _, p := range replicas {
			if got, err := metric(t.Context(), c.kube, p.Name, "breakwater_event_broker_resolved", ""); err != nil || got != "0" {
				return fmt.Errorf("replica %s: %q %w", p.Name, got, err)
			}
		}
		return nil
	})
	for _, name := range n.podNames(t) {
		n.checkDenied(t, "is denied by PodUnavailableBudget web", "delete", "pod", name)
	}
}
