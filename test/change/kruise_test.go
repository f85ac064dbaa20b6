//go:build controlplane

package change

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// cloneSet and advancedStatefulSet are kinds of OpenKruise.
var (
	cloneSet = workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		Resource:         "clonesets", Revisions: workload.ControllerRevisions,
		PauseField: workload.Field{Path: []string{"spec", "updateStrategy", "paused"}, Paused: true},
		Counts:     workload.CountReplicas,
	}
	advancedStatefulSet = workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
		Resource:         "statefulsets", Revisions: workload.ControllerRevisions,
		PauseField: workload.Field{Path: []string{"spec", "updateStrategy", "rollingUpdate", "paused"}, Paused: true},
		Counts:     workload.CountReplicas,
	}
)

// kruiseObject is a workload of OpenKruise of 6 pods, with fields of its spec.
const kruiseObject = `
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  %s
  template:
    metadata: {labels: {app: web}, annotations: {test.breakwater.dev/release: v1}}
    spec:
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists}]
      nodeSelector: {type: kwok}
      containers:
      - {name: c, image: "busybox:1", tty: false, command: [], resources: {limits: {cpu: 1000m, memory: 1024Mi}}}
`

// kruiseWorkloads are a workload of each kind.
var kruiseWorkloads = map[string]struct {
	kind workload.Kind
	spec string
}{
	"CloneSet":             {cloneSet, "updateStrategy: {type: ReCreate, maxUnavailable: 1}\n  minReadySeconds: 3"},
	"Advanced StatefulSet": {advancedStatefulSet, "updateStrategy: {rollingUpdate: {minReadySeconds: 3}}\n  podManagementPolicy: Parallel"},
}

// OpenKruise's webhooks set defaults in the template after ours computed its version, so
// the API server must call ours again: pods are found by the template that is stored.
func TestTheKindsOfTheRealOpenKruiseAreReleasedHeldRepairedAndRolledBack(t *testing.T) {
	t.Parallel()
	user := newFixture(t).useKruise(t)
	for name, w := range kruiseWorkloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newFixture(t).create(t, w.kind, object(t, fmt.Sprintf(kruiseObject, w.spec))).checkReleases(t, user)
		})
	}
}

func TestARepairOrRollbackOfAnAdvancedStatefulSetDoesNotWaitForAFailedPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	newFixture(t).useKruise(t)
	checkFailedPodBlocksNothing(t, func(t *testing.T) target {
		return newFixture(t).create(t, advancedStatefulSet, object(t, fmt.Sprintf(kruiseObject, "podManagementPolicy: OrderedReady")))
	})
}

// runKruise installs OpenKruise and runs its manager until the tests of the package end.
// It returns the user of the manager.
var runKruise = sync.OnceValues(func() (string, error) {
	return plane.RunOpenKruise(context.Background(), controlplane.OpenKruise{
		Webhooks: []string{"cloneset", "statefulset"}, FeatureGates: "PodWebhook=false,KruiseDaemon=false",
	})
})

// useKruise runs OpenKruise, configures its kinds, and returns the user of its manager.
func (f fixture) useKruise(t *testing.T) string {
	t.Helper()
	user, err := runKruise()
	if err != nil {
		t.Fatal(err)
	}
	f.awaitKind(t, cloneSet)
	f.awaitKind(t, advancedStatefulSet)
	configureKinds(t)
	for _, w := range kruiseWorkloads {
		f.awaitWebhooks(t, w.kind, object(t, fmt.Sprintf(kruiseObject, w.spec)))
	}
	return user
}
