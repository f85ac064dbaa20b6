//go:build controlplane

package change

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

// rollout is the kind of Argo Rollouts.
var rollout = workload.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
	Resource:         "rollouts", Revisions: workload.ReplicaSets,
	PauseField: workload.Field{Path: []string{"spec", "paused"}, Paused: true},
	Counts:     workload.CountReplicas,
}

// canary is a canary of 6 pods, one at a time, as its user writes it: without the empty
// fields that the controller adds, and with quantities in other units.
const canary = `
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 6
  minReadySeconds: 3
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  strategy: {canary: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}, annotations: {test.breakwater.dev/release: v1}}
    spec:
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]
      nodeSelector: {type: kwok}
      containers:
      - {name: c, image: "busybox:1", tty: false, command: [], resources: {limits: {cpu: 1000m, memory: 1024Mi}}}
      - {name: sidecar, image: "busybox:1"}
`

// The controller of Argo Rollouts writes the Rollout from its Go types.
func TestARolloutOfTheRealControllerIsReleasedHeldRepairedAndRolledBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	user := f.useArgo(t)
	f.create(t, rollout, object(t, canary)).checkReleases(t, user)
}

// A promoted Rollout keeps the pods of its former version for scaleDownDelaySeconds. Its release does not wait for them.
func TestABlueGreenRolloutSucceedsWhileItKeepsItsFormerPods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.useArgo(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := f.Kube.CoreV1().Services(f.namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := object(t, canary)
	blueGreen := map[string]any{"activeService": "web", "scaleDownDelaySeconds": int64(3600)}
	if err := unstructured.SetNestedField(o, map[string]any{"blueGreen": blueGreen}, "spec", "strategy"); err != nil {
		t.Fatal(err)
	}
	w := f.create(t, rollout, o)
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.checkComplete(t, "v2", 2)
	if n := w.updatedPods(t, "v1"); n != replicas {
		t.Errorf("%d former pods, want %d", n, replicas)
	}
}

// runArgo installs Argo Rollouts and runs its controller until the tests of the package
// end.
var runArgo = sync.OnceValue(func() error {
	ctx := context.Background()
	argo, err := plane.Build(ctx, "rollouts")
	if err != nil {
		return err
	}
	crds := exec.CommandContext(ctx, "kubectl", "apply", "--server-side", "-k", filepath.Join(argo.Module, "manifests", "crds"))
	if out, err := crds.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the CRDs: %w\n%s", err, out)
	}
	kubeconfig, err := plane.KubeconfigOf("argo-rollouts", "argo-rollouts")
	if err != nil {
		return err
	}
	metrics, err := freeport.Find(ctx)
	if err != nil {
		return err
	}
	health, err := freeport.Find(ctx)
	if err != nil {
		return err
	}
	return plane.RunProgram(filepath.Join(argo.Binaries, "rollouts-controller"), nil, "--kubeconfig", kubeconfig, "--leader-elect=false",
		"--metricsPort", strconv.Itoa(metrics), "--healthzPort", strconv.Itoa(health))
})

// useArgo runs Argo Rollouts, configures the kind, and returns the user of its controller.
func (f fixture) useArgo(t *testing.T) string {
	t.Helper()
	if err := runArgo(); err != nil {
		t.Fatal(err)
	}
	f.awaitKind(t, rollout)
	configureKinds(t)
	f.awaitWebhooks(t, rollout, object(t, canary))
	return "system:serviceaccount:argo-rollouts:argo-rollouts"
}
