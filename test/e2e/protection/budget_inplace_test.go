//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// gatedDeployment is a Deployment whose pods have the readiness gate of OpenKruise.
func gatedDeployment(replicas int) string {
	return strings.Replace(deploymentManifest(replicas, "{}"), "spec: {nodeSelector", "spec: {readinessGates: [{conditionType: InPlaceUpdateReady}], nodeSelector", 1)
}

// beginInPlaceUpdate is the first write of OpenKruise's update in place of a pod. The
// second changes the image.
func beginInPlaceUpdate(pod string) []string {
	return setGate(pod, "False")
}

func setGate(pod, status string) []string {
	return []string{"patch", "pod", pod, "--subresource=status", "-p",
		fmt.Sprintf(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":%[1]q},{"type":"Ready","status":%[1]q}]}}`, status)}
}

// A CloneSet makes a pod unready before it changes the image, and a SidecarSet changes
// the image only.
func TestAnUpdateInPlaceByOpenKruiseIsDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, gatedDeployment(3), budgetManifest("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	pods := n.podNames(t)
	n.run(t, "set", "image", "pod/"+pods[0], "sleep=busybox:2") // a SidecarSet
	n.checkDenied(t, budgetDenial, beginInPlaceUpdate(pods[1])...)
	if got := n.run(t, "get", "pod", pods[1], "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); got != "True" {
		t.Errorf("condition Ready of the second pod is %s", got)
	}
}

func TestAnUpdateInPlaceByOpenKruiseIsChargedOnce(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, gatedDeployment(3), budgetManifest("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	pods := n.podNames(t)
	n.run(t, append(beginInPlaceUpdate(pods[0]), "--dry-run=server")...)
	n.run(t, beginInPlaceUpdate(pods[0])...)
	n.checkDenied(t, budgetDenial, beginInPlaceUpdate(pods[1])...)
	n.run(t, "set", "image", "pod/"+pods[0], "sleep=busybox:2")
	awaitBudget(t, c, n.name, 20*time.Second, func(b *v1alpha1.PodUnavailableBudget) error {
		if s := b.Status; s.CurrentAvailable != 2 || s.UnavailableAllowed != 0 || len(s.UnavailablePods) > 0 {
			return fmt.Errorf("current %d, allowed %d, charged %v", s.CurrentAvailable, s.UnavailableAllowed, s.UnavailablePods)
		}
		return nil
	})
	n.run(t, setGate(pods[0], "True")...) // the update is completed
	awaitAllowed(t, c, n.name, 1)
	n.run(t, beginInPlaceUpdate(pods[1])...)
}

// Labels can be written with the status too.
func TestLabelsThatAreWrittenWithTheStatusAreDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("minAvailable: 2"))
	n.checkDenied(t, budgetDenial, "patch", "pod", n.podNames(t)[0], "--subresource=status", "-p", `{"metadata":{"labels":{"app":null}}}`)
}

// runContainer writes the status that a kubelet writes when it has started the container
// of a pod.
func (n *namespace) runContainer(t *testing.T, pod, id string) {
	t.Helper()
	n.run(t, "patch", "pod", pod, "--subresource=status", "-p", fmt.Sprintf(
		`{"status":{"containerStatuses":[{"name":"sleep","containerID":"containerd://%s","image":"busybox","imageID":"","ready":true,"restartCount":0,"state":{"running":{}}}]}}`, id))
}

// The pod stays available until the kubelet stops the old container, and also afterwards if
// the new container starts at once. A slow kubelet needs longer than the charge timeout.
func TestTheChargeOfAnUpdateInPlaceEndsWhenTheContainerIsReplaced(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 1"))
	pods := n.podNames(t)
	for _, p := range pods {
		n.runContainer(t, p, p+"-1")
	}
	awaitAllowed(t, c, n.name, 1)
	n.run(t, "set", "image", "pod/"+pods[0], "sleep=busybox:2")
	n.runContainer(t, pods[0], pods[0]+"-2")
	awaitBudget(t, c, n.name, 20*time.Second, allows(1))

	n.run(t, "set", "image", "pod/"+pods[1], "sleep=busybox:2")
	longerThanTheChargeTimeout := time.Now().Add(40 * time.Second)
	awaitBudget(t, c, n.name, 50*time.Second, func(b *v1alpha1.PodUnavailableBudget) error {
		if _, charged := b.Status.UnavailablePods[pods[1]]; !charged {
			t.Fatalf("the charge has ended %s early: %+v", time.Until(longerThanTheChargeTimeout).Round(time.Second), b.Status)
		}
		if time.Now().Before(longerThanTheChargeTimeout) {
			return errors.New("the charge timeout is not over")
		}
		return nil
	})
	n.checkDeniedByBudget(t, "set", "image", "pod/"+pods[2], "sleep=busybox:2")
	n.runContainer(t, pods[1], pods[1]+"-2")
	awaitBudget(t, c, n.name, 20*time.Second, allows(1))
}
