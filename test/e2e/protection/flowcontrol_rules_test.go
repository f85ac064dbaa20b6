//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWaysOutOfFlowControl(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 3))
	n.awaitRunning(t, "web", 3)
	c := newFlowControl(t, n, "whiteListSelector: {matchLabels: {batch: \"true\"}}")
	n.checkDenied(t, "the limit never allows 1 at once", "delete", "pod", "probe")
	n.run(t, "label", "pod", "probe", "batch=true")
	n.run(t, "delete", "pod", "probe")

	c.setLimit(t, 1)
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	n.checkDenied(t, "1 deletions were counted in 10m (limit 1)", "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	c.setLimit(t, 2) // effective with the next request
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 3)[0])
	c.awaitOpen(t, "True")

	// A client measures the time without the processes of kubectl.
	name, kube := n.awaitRunning(t, "web", 3)[0], unlimitedClient(t)
	n.run(t, "annotate", "pdfc", c.name, "--overwrite", "policy.breakwater.dev/closed="+time.Now().UTC().Format(time.RFC3339))
	closed := time.Now()
	n.await(t, "a deletion is admitted again", func() error {
		return kube.CoreV1().Pods(n.name).Delete(t.Context(), name, metav1.DeleteOptions{})
	})
	if took := time.Since(closed); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	n.await(t, "an Event names who closed it", func() error {
		if got := n.eventMessages(t, "default", "reason=ClosedManually,involvedObject.name="+c.name); !strings.Contains(got, "asked to close the breaker") {
			return errors.New(got)
		}
		return nil
	})
}

func TestFlowControlInShadowModeAllowsAndWarns(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// The ReplicaSet controller retries a denied ReplicaSet without delaying
// others.
func TestADeniedReplicaSetDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	n, other := newNamespace(t), newNamespace(t)
	n.apply(t, deploymentOf("web", 5))
	n.awaitRunning(t, "web", 5)
	c := newFlowControl(t, n, "")
	undelayed := other.createAndScaleDown(t, "undelayed", 3)
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	for i := range 5 {
		if took := other.createAndScaleDown(t, fmt.Sprintf("other-%d", i), 3); took > undelayed+20*time.Second {
			t.Errorf("took %s, before the denials %s", took, undelayed)
		}
	}
	n.awaitRunning(t, "web", 5)
	c.setLimit(t, 5)
	n.awaitRunning(t, "web", 0)
}

// createAndScaleDown lets the ReplicaSet controller create simulated pods and delete
// them, and returns the time that it took.
func (n *namespace) createAndScaleDown(t *testing.T, name string, pods int) time.Duration {
	t.Helper()
	began := time.Now()
	n.apply(t, deploymentOf(name, pods))
	n.awaitRunning(t, name, pods)
	n.run(t, "scale", "deployment", name, "--replicas=0")
	n.awaitRunning(t, name, 0)
	return time.Since(began)
}

func TestAnInvalidFlowControlIsRejected(t *testing.T) {
	t.Parallel()
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
		r := n.Try(t, manifest, "apply", "-f", "-")
		if r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: not denied with %q:\n%s", spec, want, r)
		}
	}
}
