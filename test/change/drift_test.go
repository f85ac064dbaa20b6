//go:build controlplane

package change

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestAnImageThatIsChangedInAPodIsReportedOnItsReleaseUntilThePodIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind   workload.Kind
		object any
	}{
		"Deployment":  {workload.Deployment, builder.Deployment("web", replicas, builder.Simulated)},
		"StatefulSet": {workload.StatefulSet, builder.StatefulSet("web", replicas, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).create(t, tc.kind, tc.object)
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
			pods, err := w.pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pod, container := pods[0].Name, pods[0].Spec.Containers[0].Name
			kubectl(t, "", "set", "image", "-n", w.namespace, "pod/"+pod, container+"=evil")
			w.awaitDrift(t, "container "+container+" of pod "+pod+" has image evil instead of busybox")
			w.awaitEvent(t, v1alpha1.ReasonImagesChanged)
			kubectl(t, "", "delete", "pod", "-n", w.namespace, pod)
			w.awaitDrift(t, "")
		})
	}
}

// The controller of a Deployment that is not paused replaces the ReplicaSet.
func TestAnImageThatIsChangedInAReplicaSetIsReportedOnItsReleaseUntilItIsChangedBack(t *testing.T) {
	t.Parallel()
	w := newFixture(t).create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	w.mustPatch(t, `{"spec":{"paused":true}}`)
	w.awaitWorkload(t, "is paused", func(live *workload.Workload) bool { return live.PausedOrHeld() && !live.InProgress })
	sets, err := w.Kube.AppsV1().ReplicaSets(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d ReplicaSets, %v", len(sets.Items), err)
	}
	set := sets.Items[0].Name
	kubectl(t, "", "set", "image", "-n", w.namespace, "replicaset/"+set, "sleep=evil")
	w.awaitDrift(t, "container sleep of ReplicaSet "+set+" has image evil instead of busybox")
	kubectl(t, "", "set", "image", "-n", w.namespace, "replicaset/"+set, "sleep=busybox")
	w.awaitDrift(t, "")
}

// awaitDrift waits until condition Drifted of the current release is True with a message; absent
// if the message is empty.
func (w target) awaitDrift(t *testing.T, message string) {
	t.Helper()
	await(t, fmt.Sprintf("drift %q", message), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		drifted := c.Status.GetCondition(v1alpha1.ReleaseDrifted)
		if message == "" && drifted != nil || message != "" && (!drifted.IsTrue() || !strings.Contains(drifted.Message, message)) {
			return fmt.Errorf("condition Drifted is %+v", drifted)
		}
		return nil
	})
}

// checkNeverDrifted checks that no drift of the workload was reported.
func (w target) checkNeverDrifted(t *testing.T) {
	t.Helper()
	list, err := w.Kube.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: fields.Set{"reason": v1alpha1.ReasonImagesChanged}.String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		t.Errorf("a false report of drift: %s", list.Items[i].Message)
	}
}
