//go:build e2e

package protection

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/events"
)

// sink receives events of one type from a Trigger of the Broker, which may deliver an
// event more than once.
type sink struct {
	mu   sync.Mutex
	seen map[received]int
}

// maxDeliveries is more than the Broker delivers one event.
const maxDeliveries = 10

type received struct{ source, id, body string }

// newSink listens on the address of the node, which pods can reach.
func newSink(t *testing.T, n *namespace, eventType string) *sink {
	t.Helper()
	s := &sink{seen: map[received]int{}}
	listener, err := net.Listen("tcp", net.JoinHostPort(nodeAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		e := received{r.Header.Get("Ce-Source"), r.Header.Get("Ce-Id"), string(body)}
		s.mu.Lock()
		if s.seen[e]++; s.seen[e] == maxDeliveries {
			t.Errorf("event %s was delivered %d times", e.id, maxDeliveries)
		}
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

// eventsOf returns the different events with a source.
func (s *sink) eventsOf(source string) (all []received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.seen {
		if r.source == source {
			all = append(all, r)
		}
	}
	return all
}

func TestManyDenialsSendOneCloudEventPerMinute(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	s := newSink(t, n, "dev.breakwater.deletion.denied.v1")
	n.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 0"))
	source := "/apis/policy.kruise.io/v1alpha1/namespaces/" + n.name + "/podunavailablebudgets/web"
	uid, pods := n.run(t, "get", "pub", "web", "-o", "jsonpath={.metadata.uid}"), n.podNames(t)
	denyAll := func() {
		t.Helper()
		if got := answeredStorm(t, c, n, pods, 4); got.denied != 4 {
			t.Fatalf("%+v", got)
		}
	}
	const period = int64(events.DenialPeriod / time.Second)
	first := time.Now().Unix() / period * period
	// The Broker may lose the event of a period.
	if err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) {
		denyAll()
		return len(s.eventsOf(source)) > 0, nil
	}); err != nil {
		t.Fatalf("no event reports the denials: %v", err)
	}
	for range 25 {
		denyAll()
	}
	allowed := map[string]bool{}
	for at := first; at <= time.Now().Unix(); at += period {
		allowed[fmt.Sprintf("%s/%d/denied", uid, at)] = true
	}
	// Each of two replicas sends one event per minute.
	sent := map[string]int{}
	for _, e := range s.eventsOf(source) {
		if sent[e.id]++; !allowed[e.id] || sent[e.id] > 2 {
			t.Errorf("event %d with id %s: %s; the periods of the denials allow two events with each id of %v", sent[e.id], e.id, e.body, allowed)
		}
	}
}

func TestOpeningAndClosingSendCloudEvents(t *testing.T) {
	n := newNamespace(t)
	opened := newSink(t, n, "dev.breakwater.deletionflow.opened.v1")
	closed := newSink(t, newNamespace(t), "dev.breakwater.deletionflow.closed.v1")
	c := newFlowControl(t, n, "")
	source := "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols/" + c.name
	// The Broker may lose an event, which is sent for about 25 s. Then the flow control
	// opens and closes once more.
	for times := 1; ; times++ {
		c.setLimit(t, 0)
		c.awaitOpen(t, "True")
		c.setLimit(t, 5)
		c.awaitOpen(t, "False")
		missing := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			return len(opened.eventsOf(source)) > 0 && len(closed.eventsOf(source)) > 0, nil
		})
		openings, closings := opened.eventsOf(source), closed.eventsOf(source)
		if len(openings) > times || len(closings) > times || (missing != nil && times == 5) {
			t.Fatalf("it opened and closed %d times; the events are %v and %v", times, openings, closings)
		}
		if missing == nil {
			return
		}
	}
}
