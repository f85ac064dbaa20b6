//go:build controlplane

package change

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// rollout is the kind of Argo Rollouts.
var rollout = workload.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
	Resource:         "rollouts", Revisions: workload.ReplicaSets,
	Hold:   workload.Field{Path: []string{"spec", "paused"}, Held: true},
	Counts: workload.CountReplicas,
}

// rollouts configures the kind. Its webhooks are generated, and its permissions are
// aggregated to the controller's.
var rollouts = configured("argoproj.io", []string{"rollouts"}, `
- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, revisions: ReplicaSet}`)

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
	f := newFixture(t)
	user := f.runArgo(t)
	f.create(t, rollout, object(t, canary)).checkReleases(t, user)
}

// runArgo installs Argo Rollouts, runs its controller, configures the kind, and returns
// the user of the controller.
func (f fixture) runArgo(t *testing.T) string {
	t.Helper()
	argo, err := plane.Build(t.Context(), "rollouts")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "apply", "--server-side", "-k", filepath.Join(argo.Module, "manifests", "crds"))
	f.awaitKind(t, rollout)
	kubeconfig, err := plane.KubeconfigOf("argo-rollouts", "argo-rollouts")
	if err != nil {
		t.Fatal(err)
	}
	err = plane.RunProgram(filepath.Join(argo.Binaries, "rollouts-controller"), nil, "--kubeconfig", kubeconfig, "--leader-elect=false",
		"--metricsPort", freePort(t), "--healthzPort", freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, rollouts, "apply", "--server-side", "--force-conflicts", "-f", "-")
	f.awaitWebhook(t, "vrollout.argoproj.io.kb.io")
	return "system:serviceaccount:argo-rollouts:argo-rollouts"
}
