//go:build e2e

package permission

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// Pods with hostNetwork get a node-scoped set. Its grants are revoked when the last of these pods ends.
func TestANodeScopedSetIsGrantedToPodsWithHostNetwork(t *testing.T) {
	p := setup.Provider()
	p.Name, p.NodeScoped = "nodes", true
	p.HTTP.Grant.Body.(map[string]any)["pod"] = "node"
	p.HTTP.Revoke.Path = "/grants?ip=${ip}&permission=${parameters['name']}&pod=node"
	register(t, p, "node-db", "node")
	setPodCIDR(t)
	onNode := func(name string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {stke.io/permission-set: node}},
 spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, terminationGracePeriodSeconds: 1, containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}`, name)
	}
	n := newNamespace(t, enabled)
	n.mustApply(t, onNode("one")+"\n---\n"+onNode("two"))
	n.run(t, "wait", "--for=condition=Ready", "pod/one", "pod/two", "--timeout=90s")
	node := func() []provider.Entry { return providerRecords(t).OfPod("node") }
	if held := node(); len(held) != 1 || held[0].IP != n.get(t, "one").Status.HostIP {
		t.Errorf("grants %v", held)
	}
	n.run(t, "delete", "pod", "one", "--timeout=60s")
	if held := node(); len(held) != 1 {
		t.Errorf("grants %v while a pod of the node exists", held)
	}
	n.run(t, "delete", "pod", "two", "--timeout=60s")
	if held := node(); len(held) != 0 {
		t.Errorf("grants %v after the last pod", held)
	}
}

// podNetwork is the pod CIDR of the embedded cluster.
const podNetwork = "10.1.0.0/24"

// setPodCIDR sets the pod CIDR of the node, as the controller manager does in other
// clusters. A pod with hostNetwork calls other pods from the first address of it.
func setPodCIDR(t *testing.T) {
	t.Helper()
	nodes, err := testCluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=kwok"})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes: %v", len(nodes.Items), err)
	}
	if len(nodes.Items[0].Spec.PodCIDRs) > 0 {
		return // immutable
	}
	patch := `{"spec":{"podCIDR":"` + podNetwork + `","podCIDRs":["` + podNetwork + `"]}}`
	if err := setup.Kubectl(t.Context(), "patch", "node", nodes.Items[0].Name, "-p", patch); err != nil {
		t.Fatal(err)
	}
	if err := setup.Kubectl(t.Context(), "-n", setup.System, "rollout", "restart", "deployment", "init-action-server"); err != nil {
		t.Fatal(err) // the server caches nodes
	}
	if err := setup.Kubectl(t.Context(), "-n", setup.System, "rollout", "status", "deployment", "init-action-server", "--timeout=120s"); err != nil {
		t.Fatal(err)
	}
}

// A pod is registered in the CMDB before permissions are requested. While the CMDB is
// down, nothing is granted.
func TestAPodIsRegisteredInTheCMDBBeforeItsPermissions(t *testing.T) {
	n := newNamespace(t, enabled)
	setCMDB := func(url string) {
		if err := configure(context.Background(), `{"data":{"cmdb-url":"`+url+`"}}`); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { setCMDB("") })
	setCMDB("http://nobody." + setup.Namespace + ".svc.cluster.local")
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	n.waitForReason(t, "web", podmeta.ReasonPermissionFailed)
	p := n.get(t, "web")
	if all := applications(t, p); len(all) > 0 || len(grantsOf(t, p)) > 0 {
		t.Errorf("without the CMDB: applications %+v, grants %v", all, grantsOf(t, p))
	}
	setCMDB("http://" + setup.Host)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
	got := map[string]bool{}
	for _, e := range grantsOf(t, n.get(t, "web")) {
		got[e.Permission] = e.IP == n.get(t, "web").Status.PodIP
	}
	if !got["cmdb"] || !got["orders-db"] {
		t.Errorf("the provider has grants %v", got)
	}
}

// After the sandbox of a pod is killed, the pod has another address, which gets grants.
// The grants of the previous address are revoked.
func TestANewSandboxIsGrantedItsAddressAndThePreviousAddressIsRevoked(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	previous := n.get(t, "web")
	if err := faultinjection.KillSandbox(previous); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, "the pod runs at another address and the previous one is revoked", func() error {
		p := n.get(t, "web")
		ready := false
		for _, c := range p.Status.Conditions {
			ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		if h := grantsOf(t, p); !ready || p.Status.PodIP == previous.Status.PodIP || len(h) != 1 || h[0].IP != p.Status.PodIP {
			return fmt.Errorf("ready %v at %s (was %s), grants %v", ready, p.Status.PodIP, previous.Status.PodIP, h)
		}
		// The centre records a result later than the provider does.
		states := map[string]api.State{}
		for _, app := range applications(t, previous) {
			states[app.PodIPs[0]] = app.State
		}
		if states[previous.Status.PodIP] != api.Revoked || states[p.Status.PodIP] != api.Granted {
			return fmt.Errorf("applications %v", states)
		}
		return nil
	})
}

// A pod that was created before its namespace was enabled is reported.
func TestAPodWithoutTheInitContainerIsReported(t *testing.T) {
	n := newNamespace(t, nil)
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	n.waitForEvent(t, "web", podmeta.ReasonNamespaceNotEnabled)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s") // the pod does not change from now on
	n.run(t, "label", "namespace", n.name, podmeta.Label+"="+podmeta.LabelEnabled)
	n.waitForEvent(t, "web", podmeta.ReasonPermissionNotInjected)
	if c := podmeta.Condition(n.get(t, "web"), podmeta.ConditionInjected); c == nil || c.Status != corev1.ConditionFalse || c.Reason != podmeta.ReasonPermissionNotInjected {
		t.Errorf("condition %+v", c)
	}
	// Its replacement waits.
	n.run(t, "delete", "pod", "web", "--timeout=60s")
	setFaults(t, provider.Faults{Status: http.StatusServiceUnavailable})
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	if p := n.get(t, "web"); podmeta.InitContainer(p) == nil {
		t.Error("the replacement was not injected")
	}
}
