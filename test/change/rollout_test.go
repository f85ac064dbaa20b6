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

	"k8s.io/apimachinery/pkg/runtime/schema"

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
	f.awaitWebhook(t, "vrollout.argoproj.io.kb.io")
	return "system:serviceaccount:argo-rollouts:argo-rollouts"
}
