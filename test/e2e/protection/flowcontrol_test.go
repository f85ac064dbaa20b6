//go:build e2e

package protection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
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
		for range 20 { // enough requests to reach each replica of the webhook
			if r := n.try(t, "delete", "pod", "probe", "--dry-run=server"); r.Code == 0 && !strings.Contains(r.Stderr, "shadow mode") {
				return errors.New("a deletion was admitted without the webhook")
			}
		}
		return nil
	})
	return c
}

func (c flowControl) setLimit(t *testing.T, n int) {
	t.Helper()
	c.run(t, "patch", "pdfc", c.name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"limitRules":[{"interval":"10m","limit":%d}]}}`, n))
}

// status returns one field of the status.
func (c flowControl) status(t *testing.T, path string) string {
	t.Helper()
	return c.run(t, "get", "pdfc", c.name, "-o", "jsonpath={.status."+path+"}")
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
		names = strings.Fields(n.run(t, "get", "pods", "-l", "app="+app, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
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

func TestExactlyAsManyPodsAreDeletedAsTheLimitAllows(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 40))
	names := n.awaitRunning(t, "web", 40)
	c, kube := newFlowControl(t, n, ""), unlimitedClient(t)
	c.setLimit(t, 15)
	var deleted, denied atomic.Int64
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				err = kube.CoreV1().Pods(n.name).Delete(t.Context(), name, metav1.DeleteOptions{})
			} else {
				err = kube.PolicyV1().Evictions(n.name).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name}})
			}
			switch {
			case err == nil:
				deleted.Add(1)
			case i%2 == 0 && apierrs.IsForbidden(err), i%2 == 1 && apierrs.IsTooManyRequests(err):
				denied.Add(1)
			default:
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	if deleted.Load() != 15 || denied.Load() != 25 {
		t.Errorf("%d deleted, %d denied, want 15 and 25", deleted.Load(), denied.Load())
	}
	c.await(t, "the status counts the deletions", func() error {
		if got := c.status(t, "deleted"); got != "15" {
			return fmt.Errorf("%q counted deletions", got)
		}
		if got := c.status(t, `conditions[?(@.type=="Open")].message`); !strings.Contains(got, "suspected: ") || !strings.Contains(got, "Deployment "+n.name+"/web") {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	c.awaitOpen(t, "True")
}

func TestWaysOutOfFlowControl(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 3))
	n.awaitRunning(t, "web", 3)
	c := newFlowControl(t, n, "whiteListSelector: {matchLabels: {batch: \"true\"}}")
	n.checkDenied(t, "there is never room for 1 until the limit is raised", "delete", "pod", "probe")
	n.run(t, "label", "pod", "probe", "batch=true")
	n.run(t, "delete", "pod", "probe")

	c.setLimit(t, 1)
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	n.checkDenied(t, "1 of 1 in 10m are deleted already", "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	c.setLimit(t, 2) // effective with the next request
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	c.awaitOpen(t, "True")

	closed := time.Now().UTC()
	n.run(t, "annotate", "pdfc", c.name, "--overwrite", "policy.breakwater.dev/closed="+closed.Format(time.RFC3339))
	n.await(t, "a deletion is admitted again", func() error {
		if r := n.try(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0]); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	})
	if took := time.Since(closed); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	n.await(t, "an Event names who closed it", func() error {
		if got := n.run(t, "get", "events", "-n", "default", "--field-selector", "reason=ClosedManually,involvedObject.name="+c.name); !strings.Contains(got, "closed the breaker") {
			return errors.New(got)
		}
		return nil
	})
}

func TestFlowControlInShadowModeAllowsAndWarns(t *testing.T) {
	n := newNamespace(t)
	c := newFlowControl(t, n, "shadow: true")
	r := n.try(t, "delete", "pod", "probe", "--dry-run=server")
	if r.Code != 0 || !strings.Contains(r.Stderr, "Warning: allowed in shadow mode: deletion of pod "+n.name+"/probe is denied") {
		t.Errorf("%s", r)
	}
	n.run(t, "delete", "pod", "probe")
	if got := c.status(t, "buckets[0].count"); got != "1" {
		t.Errorf("%s counted deletions", got)
	}
}

func TestTheDeletionOfANamespaceIsCountedOnceAndCompletes(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 4))
	n.awaitRunning(t, "web", 4)
	c := newFlowControl(t, n, "")
	c.setLimit(t, 4)
	n.checkDenied(t, "this deletes 5 pods", "delete", "namespace", n.name)
	c.setLimit(t, 5)
	n.run(t, "delete", "namespace", n.name, "--timeout=60s")
	if got := c.status(t, "buckets[0].count"); got != "5" {
		t.Errorf("%s counted deletions", got)
	}
	c.awaitOpen(t, "True")
}

func TestADrainWaitsUntilItIsWithinTheLimit(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("drained", 3))
	n.awaitRunning(t, "drained", 3)
	c := newFlowControl(t, n, "")
	c.setLimit(t, 1)
	n.cleanup(t, "uncordon", "-l", "type=kwok")
	done := make(chan string, 1)
	go func() {
		r, err := n.Run(t.Context(), "drain", "-l", "type=kwok", "--pod-selector=app=drained", "--ignore-daemonsets", "--force", "--timeout=90s")
		if err == nil && r.Code != 0 {
			err = errors.New(r.String())
		}
		if err != nil {
			done <- err.Error()
		}
		close(done)
	}()
	c.awaitOpen(t, "True")
	n.await(t, "the status suspects a drain", func() error {
		if got := c.status(t, `conditions[?(@.type=="Open")].message`); !strings.Contains(got, "suspected: drain") {
			return errors.New(got)
		}
		return nil
	})
	select {
	case problem := <-done:
		t.Fatalf("the drain did not wait: %s", problem)
	default:
	}
	c.setLimit(t, 9)
	if problem := <-done; problem != "" {
		t.Error(problem)
	}
}

// The ReplicaSet controller retries a denied ReplicaSet without delaying
// others.
func TestADeniedReplicaSetDoesNotDelayOthers(t *testing.T) {
	n, other := newNamespace(t), newNamespace(t)
	n.apply(t, deploymentOf("web", 5))
	n.awaitRunning(t, "web", 5)
	c := newFlowControl(t, n, "")
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	for i := range 5 {
		name := fmt.Sprintf("other-%d", i)
		began := time.Now()
		other.apply(t, deploymentOf(name, 3))
		other.awaitRunning(t, name, 3)
		other.run(t, "scale", "deployment", name, "--replicas=0")
		other.awaitRunning(t, name, 0)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
	}
	n.awaitRunning(t, "web", 5)
	c.setLimit(t, 5)
	n.awaitRunning(t, "web", 0)
}

func TestARestartKeepsTheCounts(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 3))
	c := newFlowControl(t, n, "")
	c.setLimit(t, 1)
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	system := []string{"-n", "altershieldoperator-system"}
	n.run(t, append(system, "rollout", "restart", "deployment", "protection-webhook")...)
	n.run(t, append(system, "rollout", "status", "deployment", "protection-webhook", "--timeout=120s")...)
	n.checkDenied(t, "1 of 1 in 10m are deleted already", "delete", "pod", n.awaitRunning(t, "web", 3)[0])
}

func TestAnInvalidFlowControlIsRejected(t *testing.T) {
	n := newNamespace(t)
	for spec, want := range map[string]string{
		`limitRules: [{interval: 5s, limit: 1}]`:   "spec.limitRules[0].interval",
		`limitRules: [{interval: 10, limit: 1}]`:   "spec.limitRules[0].interval",
		`limitRules: [{interval: soon, limit: 1}]`: "spec.limitRules[0].interval",
		`limitRules: [{interval: 10m, limit: -1}]`: "spec.limitRules[0].limit",
		`limitRules: []`: "spec.limitRules",
		`{limitRules: [{interval: 1d, limit: 1}], whiteListSelector: {}}`:                          "spec.whiteListSelector",
		`limitRules: [{interval: 1d, limit: 1}, {interval: 24h, limit: 2}]`:                        "spec.limitRules[1].interval",
		`{limitRules: [{interval: 1d, limit: 1}], namespaceSelector: {matchLabels: {"a b": "c"}}}`: "spec.namespaceSelector",
	} {
		manifest := "apiVersion: policy.kruise.io/v1alpha1\nkind: PodDeletionFlowControl\nmetadata: {name: " + n.name + "}\nspec:\n  " + spec
		r, err := n.RunWithInput(t.Context(), manifest, "apply", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		if r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: not denied with %q:\n%s", spec, want, r)
		}
	}
}

// Without a flow control the API server does not call the webhook.
func TestTheWebhookIsRegisteredWhileAFlowControlExists(t *testing.T) {
	n := newNamespace(t)
	awaitWebhooks := func(want string) {
		t.Helper()
		n.await(t, "the webhooks are "+want, func() error {
			if got := n.run(t, "get", "validatingwebhookconfiguration", "breakwater-deletionflow", "-o", "jsonpath={.webhooks[*].name}"); got != want {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
	}
	awaitWebhooks("")
	n.apply(t, "apiVersion: policy.kruise.io/v1alpha1\nkind: PodDeletionFlowControl\nmetadata: {name: "+n.name+"}\nspec: {limitRules: [{interval: 1d, limit: 100000}]}")
	awaitWebhooks("vdeletionflow.kb.io")
	n.run(t, "delete", "pdfc", n.name)
	awaitWebhooks("")
}

// While the webhook is down, deletions that would be counted are denied, and
// others are admitted. Deleting the webhook configuration admits all deletions.
func TestAnOutageOfTheWebhookDeniesCountedDeletions(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 3))
	n.awaitRunning(t, "web", 3)
	newFlowControl(t, n, "").setLimit(t, 9)
	const configuration, manifest = "validatingwebhookconfiguration/breakwater-deletionflow", "../../../config/protection/431-webhook-deletionflow.yaml"
	scale := func(replicas string) []string {
		return []string{"-n", "altershieldoperator-system", "scale", "deployment", "protection-webhook", "--replicas=" + replicas}
	}
	n.cleanup(t, "-n", "altershieldoperator-system", "rollout", "status", "deployment", "protection-webhook", "--timeout=55s")
	n.cleanup(t, scale("2")...)
	n.cleanup(t, "apply", "-f", manifest)
	n.run(t, scale("0")...)
	n.await(t, "a deletion is denied", func() error {
		if r := n.try(t, "delete", "pod", "probe", "--dry-run=server"); r.Code == 0 || !strings.Contains(r.Stderr, "failed calling webhook") {
			return errors.New(r.String())
		}
		return nil
	})
	n.run(t, "delete", "pod", "probe", "--as=system:serviceaccount:kube-system:namespace-controller")
	n.run(t, "apply", "-f", manifest) // keeps the webhook in the configuration
	n.checkFails(t, "failed calling webhook", "delete", "pod", n.awaitRunning(t, "web", 3)[0])

	n.run(t, "delete", configuration)
	n.await(t, "the API server does not call the webhook", func() error {
		if r := n.try(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0]); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	})
}

// checkFails runs kubectl, which must fail with the text.
func (n *namespace) checkFails(t *testing.T, text string, args ...string) {
	t.Helper()
	if r := n.try(t, args...); r.Code == 0 || !strings.Contains(r.Stderr, text) {
		t.Errorf("the command did not fail with %q:\n%s", text, r)
	}
}
