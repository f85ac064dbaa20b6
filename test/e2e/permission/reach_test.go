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
	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// A set that is meant for nodes: pods with their node's network get it, and it
// goes with the last of them.
func TestASetForNodesIsGrantedToPodsWithTheirNodesNetwork(t *testing.T) {
	p := setup.Provider()
	p.Name, p.NodeScoped = "nodes", true
	p.HTTP.Grant.Body.(map[string]any)["pod"] = "node"
	p.HTTP.Revoke.Path = "/grants?ip=${ip}&permission=${parameters['name']}&pod=node"
	meta := func(name string) api.Meta { return api.Meta{Name: name, Owner: setup.Owner} }
	if err := bed.Register(t.Context(), setup.Object{Kind: "providers", Body: p},
		setup.Object{Kind: "permissions", Body: api.Permission{Meta: meta("node-db"), Provider: "nodes", Parameters: map[string]string{"name": "node-db"}}},
		setup.Object{Kind: "permissionsets", Body: api.PermissionSet{Meta: meta("node"), Permissions: []string{"node-db"}}}); err != nil {
		t.Fatal(err)
	}
	sayWherePodsAre(t)
	onNode := func(name string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {stke.io/permission-set: node}},
 spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, terminationGracePeriodSeconds: 1, containers: [{name: app, image: busybox, command: [/bin/sleep, infinity]}]}}`, name)
	}
	n := newNamespace(t, enabled)
	n.applied(t, onNode("one")+"\n---\n"+onNode("two"))
	n.run(t, "wait", "--for=condition=Ready", "pod/one", "pod/two", "--timeout=90s")
	node := func() []provider.Entry { return books(t).OfPod("node") }
	if held := node(); len(held) != 1 || held[0].IP != n.get(t, "one").Status.HostIP {
		t.Errorf("held %v", held)
	}
	n.run(t, "delete", "pod", "one", "--timeout=60s")
	if held := node(); len(held) != 1 {
		t.Errorf("held %v while a pod of the node lives", held)
	}
	n.run(t, "delete", "pod", "two", "--timeout=60s")
	if held := node(); len(held) != 0 {
		t.Errorf("held %v after the last", held)
	}
}

// podNetwork is that of the embedded cluster's pods.
const podNetwork = "10.1.0.0/24"

// sayWherePodsAre has the node say which network its pods are in, as nodes do
// whose addresses the controller manager hands out: a pod with its node's network
// reaches others from the first address of that.
func sayWherePodsAre(t *testing.T) {
	t.Helper()
	nodes, err := bed.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type!=kwok"})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes: %v", len(nodes.Items), err)
	}
	if len(nodes.Items[0].Spec.PodCIDRs) > 0 {
		return // it cannot be changed
	}
	patch := `{"spec":{"podCIDR":"` + podNetwork + `","podCIDRs":["` + podNetwork + `"]}}`
	if err := setup.Kubectl(t.Context(), "patch", "node", nodes.Items[0].Name, "-p", patch); err != nil {
		t.Fatal(err)
	}
	if err := setup.Kubectl(t.Context(), "-n", setup.System, "rollout", "restart", "deployment", "init-action-server"); err != nil {
		t.Fatal(err) // it has read the node before
	}
	if err := setup.Kubectl(t.Context(), "-n", setup.System, "rollout", "status", "deployment", "init-action-server", "--timeout=120s"); err != nil {
		t.Fatal(err)
	}
}

// The CMDB knows the pod before anything is granted to it; while it is down
// nothing is.
func TestAPodIsRegisteredInTheCMDBBeforeItsPermissions(t *testing.T) {
	n := newNamespace(t, enabled)
	say := func(url string) {
		if err := configure(context.Background(), `{"data":{"cmdb-url":"`+url+`"}}`); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { say("") })
	say("http://nobody." + setup.Namespace + ".svc.cluster.local")
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	n.untilReason(t, "web", names.ReasonPermissionFailed)
	p := n.get(t, "web")
	if all := applications(t, p); len(all) > 0 || len(held(t, p)) > 0 {
		t.Errorf("without the CMDB: %+v, held %v", all, held(t, p))
	}
	say("http://" + setup.Host)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
	got := map[string]bool{}
	for _, e := range held(t, n.get(t, "web")) {
		got[e.Permission] = e.IP == n.get(t, "web").Status.PodIP
	}
	if !got["cmdb"] || !got["orders-db"] {
		t.Errorf("the provider has %v", got)
	}
}

// The sandbox of a pod dies: the pod has another address, is granted anew, and
// what the former address had is taken back.
func TestANewSandboxIsGrantedItsNewAddressAndLosesTheFormer(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	former := n.get(t, "web")
	if err := disruption.KillSandbox(former); err != nil {
		t.Fatal(err)
	}
	until(t, 2*time.Minute, "it runs at another address, and has nothing at the former", func() error {
		p := n.get(t, "web")
		ready := false
		for _, c := range p.Status.Conditions {
			ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		if h := held(t, p); !ready || p.Status.PodIP == former.Status.PodIP || len(h) != 1 || h[0].IP != p.Status.PodIP {
			return fmt.Errorf("ready %v at %s (was %s), held %v", ready, p.Status.PodIP, former.Status.PodIP, h)
		}
		// The centre writes down what the provider did after that has done it.
		states := map[string]api.State{}
		for _, app := range applications(t, former) {
			states[app.PodIPs[0]] = app.State
		}
		if states[former.Status.PodIP] != api.Revoked || states[p.Status.PodIP] != api.Granted {
			return fmt.Errorf("applications %v", states)
		}
		return nil
	})
}

// A pod that got in before its namespace was enabled is found.
func TestAPodThatGotInWithoutWaitingIsFound(t *testing.T) {
	n := newNamespace(t, nil)
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	n.untilEvent(t, "web", names.ReasonNamespaceNotEnabled)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s") // nothing of it changes from now on
	n.run(t, "label", "namespace", n.name, names.Label+"="+names.LabelEnabled)
	n.untilEvent(t, "web", names.ReasonPermissionNotInjected)
	if c := names.Condition(n.get(t, "web"), names.ConditionInjected); c == nil || c.Status != corev1.ConditionFalse || c.Reason != names.ReasonPermissionNotInjected {
		t.Errorf("condition %+v", c)
	}
	// Its successor waits.
	n.run(t, "delete", "pod", "web", "--timeout=60s")
	faults(t, provider.Faults{Status: http.StatusServiceUnavailable})
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	if p := n.get(t, "web"); names.InitContainer(p) == nil {
		t.Error("its successor was not injected")
	}
}
