//go:build controlplane

package change

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// brokenRelease is a release whose pods find no node.
const brokenRelease = `{"spec":{"template":{"metadata":{"annotations":{"` + builder.Marker + `":"v2"}},"spec":{"nodeSelector":{"missing":"node"}}}}}`

// applyV1 is the template of the first release.
const applyV1 = `{"spec":{"template":{"metadata":{"annotations":{"` + builder.Marker + `":"v1"}},"spec":{"nodeSelector":{"missing":null}}}}}`

// A StatefulSet with podManagementPolicy OrderedReady waits for a pod that is not Ready before it replaces any.
func TestARepairOrRollbackOfAStatefulSetDoesNotWaitForAFailedPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	checkFailedPodBlocksNothing(t, func(t *testing.T) target {
		s := builder.StatefulSet("web", 2, 0)
		s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
		return newFixture(t).create(t, workload.StatefulSet, s)
	})
}

// checkFailedPodBlocksNothing ends the suspension of a StatefulSet with a failed pod that is not Ready, in each way.
func checkFailedPodBlocksNothing(t *testing.T, create func(t *testing.T) target) {
	for name, end := range map[string]func(t *testing.T, w target){
		"a repair": func(t *testing.T, w target) {
			w.mustPatch(t, repairOn("v3", "null"))
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
		},
		"a second repair": func(t *testing.T, w target) {
			w.mustPatch(t, repairOn("v3", `"other"`))
			w.awaitPodsOf(t, "v3", 1)
			w.mustPatch(t, `{"metadata":{"annotations":{"`+v1alpha1.BypassAnnotation+`":null}}}`)
			w.mustPatch(t, repairOn("v4", "null"))
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 4)
		},
		"the former template": func(t *testing.T, w target) {
			w.mustPatch(t, applyV1)
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
		},
		"the plugin": func(t *testing.T, w target) {
			w.mustPlugin(t, 0, nil, "rollback", w.kind.Argument()+"/web")
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
		},
		"a requested rollback": func(t *testing.T, w target) {
			w.requestRollback(t, 2)
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := create(t)
			w.awaitSaved(t, 1)
			ready := w.uidOf(t, "web-0")
			w.mustPatch(t, brokenRelease)
			w.awaitPodsOf(t, "v2", 1)
			w.failOrder(t, 2)
			end(t, w)
			w.awaitResumed(t)
			if live, err := w.get(t.Context()); err != nil || live.Template.Annotations[builder.Marker] == "v1" && w.uidOf(t, "web-0") != ready {
				t.Errorf("Ready pod web-0 was replaced by a rollback: %v", err)
			}
		})
	}
}

// failOrder fails the order of an attempt as a whole, and waits until the workload is suspended and held.
func (w target) failOrder(t *testing.T, attempt int64) {
	t.Helper()
	await(t, fmt.Sprintf("the order of attempt %d is failed", attempt), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		if c.Spec.Attempt != attempt {
			return fmt.Errorf("attempt %d is current", c.Spec.Attempt)
		}
		_, err = w.Breakwater.AppV1alpha1().ChangeWorkloads(w.namespace).Patch(ctx, c.Name, types.MergePatchType,
			[]byte(`{"status":{"orderResult":{"verdict":"fail","message":"find error"}}}`), metav1.PatchOptions{}, "status")
		return err
	})
	w.awaitHeld(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, attempt)
}

// awaitPodsOf waits until n pods have the marker.
func (w target) awaitPodsOf(t *testing.T, marker string, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d pods of %s", n, marker), func(context.Context) error {
		if got := w.updatedPods(t, marker); got != n {
			return fmt.Errorf("%d pods", got)
		}
		return nil
	})
}

// uidOf returns the UID of a pod.
func (w target) uidOf(t *testing.T, pod string) types.UID {
	t.Helper()
	p, err := w.Kube.CoreV1().Pods(w.namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.UID
}
