//go:build e2e || controlplane

package protection

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/test/e2e/replicas"
)

// deploymentOf returns a Deployment of simulated pods.
func deploymentOf(name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: %[3]s`, name, replicas, simulatedPodSpec)
}

// cleanup runs kubectl after the test, with a new context.
func (n *namespace) cleanup(t *testing.T, args ...string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if r, err := n.Run(ctx, args...); err != nil || r.Code != 0 {
			t.Errorf("%v %s", err, r)
		}
	})
}

// flowControl is a flow control that selects only this namespace.
type flowControl struct {
	*namespace
	name string
}

// newFlowControl creates a flow control with limit 0 and waits until all
// replicas enforce it.
func newFlowControl(t *testing.T, n *namespace, more string) flowControl {
	t.Helper()
	c := flowControl{n, n.name}
	n.apply(t, fmt.Sprintf(`
apiVersion: policy.kruise.io/v1alpha1
kind: PodDeletionFlowControl
metadata: {name: %s}
spec:
  limitRules: [{interval: 10m, limit: 0}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  %s`, n.name, more))
	n.cleanup(t, "delete", "pdfc", n.name)
	n.apply(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: probe}\nspec: "+simulatedPodSpec)
	n.await(t, "all replicas enforce the flow control", func() error {
		return replicas.Reach(8, func() error { return n.deniesProbe(t) })
	})
	return c
}

// deniesProbe returns an error unless a flow control denies the deletion of pod probe, or would deny it without shadow mode.
func (n *namespace) deniesProbe(t *testing.T) error {
	result := n.kube.CoreV1().RESTClient().Delete().Namespace(n.name).Resource("pods").Name("probe").
		Body(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}).MaxRetries(0).Do(t.Context())
	if slices.ContainsFunc(result.Warnings(), func(w net.WarningHeader) bool { return strings.Contains(w.Text, "shadow mode") }) {
		return nil
	}
	if err := result.Error(); !apierrs.IsForbidden(err) {
		return fmt.Errorf("the answer to a deletion is %w, want a denial", err)
	}
	return nil
}

func (c flowControl) setLimit(t *testing.T, n int) {
	t.Helper()
	c.run(t, "patch", "pdfc", c.name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"limitRules":[{"interval":"10m","limit":%d}]}}`, n))
}

// status returns one field of the status.
func (c flowControl) status(t *testing.T, path string) string {
	t.Helper()
	return c.get(t, "pdfc", c.name, "{.status."+path+"}")
}

func (c flowControl) awaitOpen(t *testing.T, want string) {
	t.Helper()
	c.await(t, "condition Open is "+want, func() error {
		if got := c.status(t, `conditions[?(@.type=="Open")].status`); got != want {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

// awaitRunning waits until a number of pods are running and returns their
// names.
func (n *namespace) awaitRunning(t *testing.T, app string, want int) (names []string) {
	t.Helper()
	n.await(t, fmt.Sprintf("%d pods run", want), func() error {
		names = strings.Fields(n.list(t, "pod", metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "status.phase=Running"}, itemNames))
		if len(names) != want {
			return fmt.Errorf("%d pods run", len(names))
		}
		return nil
	})
	return names
}

// unlimitedClient returns a client without a rate limit.
func unlimitedClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return noRetry{t, rt} })
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// noRetry fails the test when a response has Retry-After, which makes client-go
// sleep.
type noRetry struct {
	t    *testing.T
	next http.RoundTripper
}

func (n noRetry) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(req)
	if err == nil && resp.Header.Get("Retry-After") != "" {
		n.t.Errorf("response to %s %s: status %d with Retry-After", req.Method, req.URL.Path, resp.StatusCode)
	}
	return resp, err
}
