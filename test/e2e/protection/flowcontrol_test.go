//go:build e2e

package protection

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
)

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
			request := func() error {
				if i%2 == 0 {
					return kube.CoreV1().Pods(n.name).Delete(t.Context(), name, metav1.DeleteOptions{})
				}
				return kube.PolicyV1().Evictions(n.name).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name}})
			}
			err := request()
			// On a busy machine the API server may not wait long enough for the webhook,
			// which counts a repeated deletion once, or the webhook may not decide in time.
			for attempts := 1; (apierrs.IsInternalError(err) || apierrs.HasStatusCause(err, admission.CauseUndecided)) && attempts < 10; attempts++ {
				err = request()
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

// The pods are on one node, so that the drain cordons no other: tests of other
// packages use the nodes.
func TestADrainWaitsUntilItIsWithinTheLimit(t *testing.T) {
	n := newNamespace(t)
	node := n.run(t, "get", "nodes", "-l", "type=kwok", "-o", "jsonpath={.items[0].metadata.name}")
	n.apply(t, strings.Replace(deploymentOf("drained", 3), "type: kwok", "kubernetes.io/hostname: "+node, 1))
	n.awaitRunning(t, "drained", 3)
	c := newFlowControl(t, n, "")
	c.setLimit(t, 1)
	n.cleanup(t, "uncordon", node)
	done := make(chan string, 1)
	go func() {
		r, err := n.Run(t.Context(), "drain", node, "--pod-selector=app=drained", "--ignore-daemonsets", "--force", "--timeout=90s")
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

func TestARestartKeepsTheCounts(t *testing.T) {
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 3))
	c := newFlowControl(t, n, "")
	c.setLimit(t, 1)
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	system := []string{"-n", "altershieldoperator-system"}
	n.run(t, append(system, "rollout", "restart", "deployment", "protection-webhook")...)
	n.run(t, append(system, "rollout", "status", "deployment", "protection-webhook", "--timeout=120s")...)
	n.checkDenied(t, "1 deletions were counted in 10m (limit 1)", "delete", "pod", n.awaitRunning(t, "web", 3)[0])
}

// Without a flow control the API server does not call the webhook.
func TestTheWebhookIsRegisteredWhileAFlowControlExists(t *testing.T) {
	n := newNamespace(t)
	awaitWebhooks := func(want string) {
		t.Helper()
		n.await(t, "the webhooks are "+want, func() error {
			if got := n.get(t, "validatingwebhookconfiguration", "breakwater-deletionflow", "{.webhooks[*].name}"); got != want {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
	}
	awaitWebhooks("")
	n.apply(t, "apiVersion: policy.kruise.io/v1alpha1\nkind: PodDeletionFlowControl\nmetadata: {name: "+n.name+"}\nspec: {limitRules: [{interval: 1d, limit: 100000}]}")
	awaitWebhooks("vdeletionflow.kb.io vnamespacedeletionflow.kb.io")
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
