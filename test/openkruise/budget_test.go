//go:build controlplane

package openkruise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/controlplane"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
	"github.com/breakwater-dev/breakwater/test/poll"
)

const (
	replicas = 6
	timeout  = 5 * time.Minute
)

const manifests = `
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  namespace: %[1]s
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: RollingUpdate, maxUnavailable: 100%%}
  containers:
  - {name: sidecar, image: "sidecar:1", podInjectPolicy: BeforeAppContainer, shareVolumePolicy: {type: disabled}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: InPlaceOnly, maxUnavailable: 100%%}
  template:
    metadata: {labels: {app: web}}
    spec:
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]
      nodeSelector: {type: kwok}
      containers: [{name: app, image: "app:1"}]
---
apiVersion: policy.kruise.io/v1alpha1
kind: PodUnavailableBudget
metadata: {name: web, namespace: %[1]s}
spec:
  targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}
  maxUnavailable: 1
`

// Without the rule for pods/status, only 3 of 6 pods were Ready: the CloneSet makes a pod
// unready before it changes the image, and the change of an unready pod is not charged.
func TestUpdatesInPlaceByTheRealOpenKruiseNeverExceedABudget(t *testing.T) {
	c := clients.Require(t)
	_, err := plane.RunOpenKruise(t.Context(), controlplane.OpenKruise{
		Webhooks:     []string{"cloneset", "sidecarset", "pod", "podunavailablebudget"},
		FeatureGates: "KruiseDaemon=false,PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=false",
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := testnamespace.Create(t.Context(), c.Kube, metav1.ObjectMeta{GenerateName: "kruise-"})
	if err != nil {
		t.Fatal(err)
	}
	turnBudgetsOff(t, fmt.Sprintf(manifests, n.Name))
	controlplane.RunKubelet(t, c.Kube, n.Name)
	kubectl(t, fmt.Sprintf(manifests, n.Name), "apply", "-f", "-")
	kubectl(t, "", "wait", "--for=condition=Guarding", "pub/web", "-n", n.Name, "--timeout=60s")
	await(t, "the budget allows one unavailable pod", func(ctx context.Context) error {
		b, err := c.Breakwater.PolicyV1alpha1().PodUnavailableBudgets(n.Name).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := b.Status; s.CurrentAvailable != replicas || s.UnavailableAllowed != 1 {
			return fmt.Errorf("available %d, allowed %d", s.CurrentAvailable, s.UnavailableAllowed)
		}
		return updated(ctx, c.Kube, n.Name, "app:1", "sidecar:1")
	})

	lowest, err := controlplane.WatchAvailable(t.Context(), c.Kube, n.Name, replicas)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "patch", "cloneset", "web", "-n", n.Name, "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"app:2"}]`)
	kubectl(t, "", "patch", "sidecarset", n.Name, "--type=json", "-p", `[{"op":"replace","path":"/spec/containers/0/image","value":"sidecar:2"}]`)
	await(t, "all pods are updated", func(ctx context.Context) error {
		return updated(ctx, c.Kube, n.Name, "app:2", "sidecar:2")
	})
	if got, err := lowest(); err != nil || got != replicas-1 {
		t.Errorf("at least %d of %d pods were Ready, %v, want %d under a budget of 1", got, replicas, err, replicas-1)
	}
}

// updated checks that all pods are Ready with containers of the images.
func updated(ctx context.Context, kube kubernetes.Interface, namespace string, images ...string) error {
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pods.Items) != replicas {
		return fmt.Errorf("%d pods", len(pods.Items))
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		var running []string
		for _, s := range p.Status.ContainerStatuses {
			if s.Ready {
				running = append(running, s.ImageID)
			}
		}
		for _, image := range images {
			if !strings.Contains(strings.Join(running, " "), image) {
				err = errors.Join(err, fmt.Errorf("pod %s runs %v", p.Name, running))
			}
		}
		if !workload.PodReady(p) {
			err = errors.Join(err, fmt.Errorf("pod %s is not Ready", p.Name))
		}
	}
	return err
}

func await(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	poll.Require(t, 500*time.Millisecond, timeout, what, condition)
}

// kubectl runs kubectl with the manifest as its input.
var kubectl = runner.Kubectl{}.Require
