//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/controlplane"
)

func TestChangesInPlaceAreDecidedByTheBudget(t *testing.T) {
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
	// A pod that is already unavailable is not charged again.
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

// A rollout with maxUnavailable 5 completes, and the budget keeps nine of ten
// pods available.
func TestARolloutCompletesUnderABudget(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]string{"maxUnavailable": "maxUnavailable: 1", "minAvailable": "minAvailable: 90%"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(10, "{rollingUpdate: {maxSurge: 0, maxUnavailable: 5}}"), budgetManifest(limits))
			lowest, err := controlplane.WatchAvailable(t.Context(), connect(t).kube, n.name, 10)
			if err != nil {
				t.Fatal(err)
			}
			n.run(t, "set", "image", "deployment/web", "sleep=busybox:2")
			n.run(t, "rollout", "status", "deployment", "web", "--timeout=120s")
			if got, err := lowest(); err != nil || got < 9 {
				t.Errorf("%d pods were available at one time, %v, want at least 9", got, err)
			}
		})
	}
}

// With strategy Recreate new pods follow the deletion of all old ones, which the budget denies.
func TestARecreationCompletesAfterAScaleDown(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(4, "{type: Recreate}"), budgetManifest("maxUnavailable: 25%"))
	n.run(t, "set", "image", "deployment/web", "sleep=busybox:2")
	n.awaitDenialEvent(t)
	if got := len(n.podNames(t)); got < 3 {
		t.Errorf("%d of 4 pods are left", got)
	}
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.await(t, "no pod is left", func() error {
		if got := n.podNames(t); len(got) > 0 {
			return fmt.Errorf("pods %v", got)
		}
		return nil
	})
	n.run(t, "scale", "deployment", "web", "--replicas=4")
	n.awaitRollout(t)
	if got := n.run(t, "get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}"); got != "busybox:2 busybox:2 busybox:2 busybox:2" {
		t.Errorf("the pods have the images %s", got)
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
