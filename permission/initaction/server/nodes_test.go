package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// A process with hostNetwork reaches pods of its node from the address of the
// bridge, the first address of the pod CIDR.
func TestAPodWithHostNetworkMayCallFromTheAddressesOfItsNode(t *testing.T) {
	otherIP := func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "192.0.2.1" }
	w := newFixture(t, newPod(func(p *corev1.Pod) { otherIP(p); p.Spec.HostNetwork = true }))
	if status, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("with hostNetwork: %d %+v", status, a)
	}
	w = newFixture(t, newPod(otherIP))
	if status, a := w.authorize("pod", orders); status != http.StatusForbidden || a.Reason != reasonSourceAddressMismatch {
		t.Errorf("without hostNetwork: %d %+v", status, a)
	}
}

// An address that is not that of the node any more may be that of another node.
func TestThePodOfARecreatedNodeRequestsPermissionsForItsAddress(t *testing.T) {
	on := func(hostIP string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.HostIP = hostIP }
	}
	w := newFixtureAt(t, clocktest.NewFakeClock(time.Now()), newPod(on("192.0.2.1"))) // a constant clock: the node stays in the cache
	reads := func() (n int) {
		for _, a := range w.kube.Actions() {
			if a.GetVerb() == "get" && a.GetResource().Resource == "nodes" {
				n++
			}
		}
		return n
	}
	expect := func(token, address string, wantReads int) {
		t.Helper()
		if status, a := w.authorize(token, orders); a.State != protocol.Granted {
			t.Fatalf("%d %+v", status, a)
		}
		if got := w.centre.requests[len(w.centre.requests)-1].NodeIPs; !slices.Equal(got, []string{address}) || reads() != wantReads {
			t.Errorf("requested for %v after %d reads of the node, want %s after %d", got, reads(), address, wantReads)
		}
	}
	addPod := func(name, hostIP string) {
		w.tokens[name] = bound(name, name)
		w.updatePod(newPod(func(p *corev1.Pod) { p.Name, p.UID, p.Status.HostIP = name, types.UID(name), hostIP }))
	}
	expect("pod", "192.0.2.1", 1)
	node, err := w.kube.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses[0].Address = "192.0.2.2"
	if _, err := w.kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.kube.ClearActions()
	addPod("recreated", "192.0.2.2")
	expect("recreated", "192.0.2.2", 1)
	addPod("same-node", "192.0.2.2")
	expect("same-node", "192.0.2.2", 1)
	addPod("without-host-ip", "")
	expect("without-host-ip", "192.0.2.2", 1)
	addPod("external", "203.0.113.1") // the address of its node has another type
	expect("external", "192.0.2.2", 2)
}

// A cloud controller adds the addresses of a new node after pods run on it.
func TestAPodOfANodeWithoutAddressIsNotDenied(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(r api.ApplicationRequest, _ int) (api.State, error) {
		if len(r.NodeIPs) == 0 {
			return "", &centreclient.StatusError{Status: http.StatusBadRequest, Detail: api.Error{Reason: "BadRequest", Field: "nodeIPs",
				Message: "nodeIPs: required: provider nodes of permission orders-db is nodeScoped"}}
		}
		return api.Granted, nil
	}
	setAddresses := func(addresses ...corev1.NodeAddress) {
		node, err := w.kube.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Addresses = addresses
		if _, err := w.kube.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	setAddresses()
	for range 3 {
		if _, a := w.authorize("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, "nodeIPs: required") {
			t.Fatalf("%+v", a)
		}
	}
	setAddresses(corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.1"})
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("with an address: %+v", a)
	}
}

// The node is not read for each of its pods.
func TestTheAddressesOfANodeWithoutOneAreCachedShortly(t *testing.T) {
	kube := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	now := clocktest.NewFakeClock(time.Now())
	nodes := newNodes(kube, now)
	for _, wantReads := range []int{1, 1, 2} {
		if wantReads == 2 {
			now.Step(unaddressedNodeTTL)
		}
		if _, err := nodes.get(t.Context(), "node", ""); err != nil || len(kube.Actions()) != wantReads {
			t.Errorf("%d reads, want %d, %v", len(kube.Actions()), wantReads, err)
		}
	}
}
