//go:build e2e

package protection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const budgetDenial = "is denied by PodUnavailableBudget web"

func TestADeletionBeyondTheBudgetIsDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3"))
	name := n.podNames(t)[0]
	for _, flags := range [][]string{{}, {"--now"}, {"--force", "--grace-period=0"}, {"--dry-run=server"}, {"--cascade=orphan"}} {
		n.checkDenied(t, "3 of 3 are available and 3 have to be", append([]string{"delete", "pod", name, "--wait=false"}, flags...)...)
	}
	n.checkDenied(t, budgetDenial, "delete", "pods", "--all", "--wait=false")
	n.checkDenied(t, budgetDenial, "delete", "--raw", n.path("pods")) // deletecollection
	n.checkDenied(t, budgetDenial, "delete", "replicasets", "--all", "--wait=false")
	r := n.tryWithInput(t, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, name),
		"create", "--raw", n.path("pods")+"/"+name+"/eviction", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) || !strings.Contains(r.Stderr, "TooManyRequests") && !strings.Contains(r.Stderr, "429") && !strings.Contains(r.Stderr, "EVICT") {
		t.Errorf("an eviction:\n%s", r)
	}
	if got := n.podNames(t); len(got) != 3 {
		t.Errorf("remaining pods are %v", got)
	}
	// A lower minimum allows a deletion.
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	n.await(t, "the budget allows a deletion", func() error {
		if r := n.try(t, "delete", "pod", name, "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

func TestChangesInPlaceAreJudged(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3"))
	name := n.podNames(t)[0]
	n.checkDeniedByBudget(t, "set", "image", "pod/"+name, "sleep=busybox:2")
	n.checkDenied(t, budgetDenial, "label", "pod", name, "unavailable-pod.kruise.io/test=true")
	n.checkDenied(t, budgetDenial, "patch", "pod", name, "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	n.checkDenied(t, budgetDenial, "label", "pod", name, "app-")
	n.checkDenied(t, budgetDenial, "annotate", "pod", name, "pub.kruise.io/no-protect=true")
	// Changes that keep the pod available are not charged.
	n.run(t, "label", "pod", name, "more=labels")
	n.run(t, "annotate", "pod", name, "some=note")

	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	n.await(t, "the budget allows one unavailable pod", func() error {
		if r := n.try(t, "label", "pod", name, "unavailable-pod.kruise.io/test=true"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	other := n.podNames(t)[1]
	n.checkDeniedByBudget(t, "set", "image", "pod/"+other, "sleep=busybox:2")
	// A pod that is unavailable already is not charged again.
	n.run(t, "set", "image", "pod/"+name, "sleep=busybox:2")
	n.run(t, "label", "pod", name, "unavailable-pod.kruise.io/test-")
	n.await(t, "the budget allows a change of the other pod", func() error {
		if r := n.try(t, "set", "image", "pod/"+other, "sleep=busybox:2"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// checkDeniedByBudget runs kubectl, which must be denied by the budget. It does
// not require Forbidden, because set image omits it.
func (n *namespace) checkDeniedByBudget(t *testing.T, args ...string) {
	t.Helper()
	if r := n.try(t, args...); r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) {
		t.Errorf("the command was not denied by the budget:\n%s", r)
	}
}

// The pod is on the real node, because simulated nodes cannot resize a pod.
func TestAResizeIsJudged(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0,
 containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity], resources: {requests: {cpu: 10m}}}]}}`)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	n.apply(t, budgetManifest("minAvailable: 1"))
	n.run(t, "wait", "--for=condition=Guarding", "pub/web", "--timeout=60s")
	resize := []string{"patch", "pod", "web", "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"sleep","resources":{"requests":{"cpu":"20m"}}}]}}`}
	n.checkDenied(t, budgetDenial, resize...)
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":0}}`)
	n.await(t, "the budget allows the resize", func() error {
		if r := n.try(t, resize...); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	// No container restarts, and the kubelet reports the resize before the
	// charge expires.
	awaitBudget(t, connect(t), n.name, 30*time.Second, func(b *v1alpha1.PodUnavailableBudget) error {
		if len(b.Status.UnavailablePods) > 0 || b.Status.UnavailableAllowed != 1 {
			return fmt.Errorf("charged %v, %d allowed", b.Status.UnavailablePods, b.Status.UnavailableAllowed)
		}
		return nil
	})
	if got := n.run(t, "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].restartCount}"); got != "20m 0" {
		t.Errorf("got %q", got)
	}
}

// A rollout with maxUnavailable 5 completes, and the budget keeps nine of ten
// pods available.
func TestARolloutCompletesUnderABudget(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{"maxUnavailable": "maxUnavailable: 1", "minAvailable": "minAvailable: 90%"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(10, "{rollingUpdate: {maxSurge: 0, maxUnavailable: 5}}"), budgetManifest(limits))
			lowest := n.watchAvailable(t, 10)
			n.run(t, "set", "image", "deployment/web", "sleep=busybox:2")
			n.run(t, "rollout", "status", "deployment", "web", "--timeout=120s")
			if got := lowest(); got < 9 {
				t.Errorf("%d pods were available at one time, want at least 9", got)
			}
		})
	}
}

func TestAScaleDownIsNeverBlocked(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{
		"minAvailable": "minAvailable: 8", "all": "minAvailable: 100%", "none": "maxUnavailable: 0", "a per cent": "maxUnavailable: 25%",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(10, "{}"), budgetManifest(limits))
			for _, replicas := range []int{4, 0} {
				n.run(t, "scale", "deployment", "web", fmt.Sprintf("--replicas=%d", replicas))
				n.await(t, fmt.Sprintf("%d pods remain", replicas), func() error {
					if got := n.podNames(t); len(got) != replicas {
						return fmt.Errorf("%d pods remain", len(got))
					}
					return nil
				})
			}
		})
	}
}

// Deleting the topmost owner is not a disruption, with any propagation policy.
func TestAnApplicationCanBeDeleted(t *testing.T) {
	t.Parallel()
	for _, cascade := range []string{"background", "foreground"} {
		t.Run(cascade, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3"))
			n.run(t, "delete", "deployment", "web", "--cascade="+cascade, "--timeout=60s")
			n.await(t, "the pods are deleted", func() error {
				if got := n.podNames(t); len(got) > 0 {
					return fmt.Errorf("remaining pods are %v", got)
				}
				return nil
			})
		})
	}
}

func TestANamespaceWithABudgetTerminates(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 0"))
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}

func TestANamespaceIsLabeledWhileItHasABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	label := func() string {
		return n.run(t, "get", "namespace", n.name, "-o", `jsonpath={.metadata.labels.policy\.breakwater\.dev/guarded}`)
	}
	n.apply(t, budgetManifest("maxUnavailable: 0"))
	if got := label(); got != "true" {
		t.Errorf("after the first budget: %q", got)
	}
	n.run(t, "label", "namespace", n.name, "policy.breakwater.dev/guarded-")
	n.await(t, "the label is restored", func() error {
		if got := label(); got != "true" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	n.run(t, "delete", "pub", "web")
	n.await(t, "the label is removed", func() error {
		if got := label(); got != "" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

func TestASelectorWithFieldValueIsRejectedWithAHint(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	r := n.tryWithInput(t, `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {selector: {matchExpressions: [{key: app, operator: In, value: foo}]}, maxUnavailable: 1}}`, "apply", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, "spec.selector.matchExpressions[0].values") {
		t.Errorf("got:\n%s", r)
	}
}

func TestTheAPIVersionOfATargetMayOmitTheVersion(t *testing.T) {
	t.Parallel()
	for _, apiVersion := range []string{"apps", "apps/v1"} {
		t.Run(apiVersion, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(2, "{}"), `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: `+apiVersion+`, kind: Deployment, name: web}, maxUnavailable: 0}}`)
			n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
		})
	}
}

func TestABudgetInShadowModeAllowsAndRecordsAnEvent(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3, shadow: true"))
	name := n.podNames(t)[0]
	r := n.try(t, "delete", "pod", name)
	if r.Code != 0 || !strings.Contains(r.Stderr, "allowed in shadow mode") {
		t.Errorf("got:\n%s", r)
	}
	n.await(t, "an Event reports the denial", func() error {
		if got := n.run(t, "get", "events", "--field-selector=reason=DisruptionWouldBeDenied", "-o", "name"); got == "" {
			return errors.New("no Event")
		}
		return nil
	})
}

// A drain waits for the budget and completes.
func TestADrainWaitsAndCompletes(t *testing.T) {
	n := newNamespace(t)
	nodes := strings.Fields(n.run(t, "get", "nodes", "-l", "type=kwok", "-o", "jsonpath={.items[*].metadata.name}"))[:2]
	here := fmt.Sprintf(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}}, `,
		strings.Join(nodes, ", "))
	workload := strings.Replace(deploymentManifest(6, "{}"), "nodeSelector: {type: kwok}", here+"nodeSelector: {type: kwok}", 1)
	// The drain selects only pods of this test.
	workload = strings.Replace(workload, "metadata: {labels: {app: web}}", "metadata: {labels: {app: web, drained: "+n.name+"}}", 1)
	n.applyWithBudget(t, workload, budgetManifest("maxUnavailable: 1"))
	on := func(node string) []string {
		return strings.Fields(n.run(t, "get", "pods", "-l", "app=web", "--field-selector=spec.nodeName="+node, "-o", "name"))
	}
	node := nodes[0]
	if len(on(nodes[1])) > len(on(node)) { // the node has at least three of the six pods
		node = nodes[1]
	}
	t.Cleanup(func() {
		if r, err := n.Run(context.Background(), "uncordon", node); err != nil || r.Code != 0 {
			t.Errorf("%s: %v", r, err)
		}
	})
	drain := n.try(t, "drain", node, "--pod-selector=drained="+n.name, "--ignore-daemonsets", "--timeout=120s")
	if drain.Code != 0 || !strings.Contains(drain.Stderr, budgetDenial) {
		t.Errorf("the drain was not denied and repeated:\n%s", drain)
	}
	n.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
	if left := on(node); len(left) > 0 {
		t.Errorf("pods remain on the node: %v", left)
	}
}
