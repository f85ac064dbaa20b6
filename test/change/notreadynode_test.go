//go:build controlplane

package change

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// notReadyNode creates a node that is not Ready: it has no kubelet.
func (f fixture) notReadyNode(t *testing.T, name string) {
	t.Helper()
	_, err := f.Kube.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the pod garbage collector deletes its pods
		if err := f.Kube.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	resources := `{"pods":"10","cpu":"1","memory":"1Gi"}`
	_, err = f.Kube.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"status":{"capacity":%[1]s,"allocatable":%[1]s,"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady"}]}}`,
		resources), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// The DaemonSet controller counts the node only if the pods tolerate its taint. If
// they do not, the controller may have created a pod before the node had the taint. That
// pod cannot be scheduled.
func TestADaemonSetReleaseDoesNotWaitForANodeThatIsNotReady(t *testing.T) {
	t.Parallel()
	for name, tolerated := range map[string]bool{"whose taint is tolerated": true, "whose taint is not tolerated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			nodes, err := f.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 3, LabelSelector: "type=kwok"})
			if err != nil {
				t.Fatal(err)
			}
			names := []string{"not-ready-" + f.namespace}
			for i := range nodes.Items {
				names = append(names, nodes.Items[i].Labels[corev1.LabelHostname])
			}
			f.notReadyNode(t, names[0])
			daemon := builder.DaemonSet("web", names, 0)
			if tolerated {
				spec := &daemon.Spec.Template.Spec
				spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists})
			}
			two := intstr.FromInt32(2) // the DaemonSet controller itself counts the pod of this node as unavailable
			daemon.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
				Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &two},
			}
			w := f.create(t, workload.DaemonSet, daemon)
			w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
			w.mustPatch(t, releaseOf("v2"))
			if c := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2); c.Status.Counts.Passed != 3 {
				t.Errorf("counts %+v, want 3 that passed", c.Status.Counts)
			}
		})
	}
}
