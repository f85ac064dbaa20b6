package rollback

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// badPods is a Finder for which every pod has the version that was rolled back.
type badPods struct{ *fixture }

// ReleaseOfPod implements Finder.
func (f badPods) ReleaseOfPod(*corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool) {
	return v1alpha1.WorkloadRef{}, v1alpha1.Release{Version: f.bad, Attempt: 2}, true
}

// rolledBackStatefulSet returns StatefulSet db, whose rollback is attempt 3, in progress.
func (w *fixture) rolledBackStatefulSet(start, partition int32, currentRevision string) *workload.Workload {
	w.t.Helper()
	s := builder.StatefulSet("db", 5, 0)
	s.Namespace, s.UID = "default", "u1"
	s.Annotations = releaseAnnotations(w.good, 3)
	s.Annotations[v1alpha1.RollbackAnnotation] = string(builder.JSON(w.t, v1alpha1.Rollback{
		Kind: v1alpha1.RollbackRequested, FromVersion: w.bad, FromAttempt: 2, ToVersion: w.good, Attempt: 3}))
	s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
	s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(partition)}
	s.Status = appsv1.StatefulSetStatus{Replicas: 5, UpdatedReplicas: 0, AvailableReplicas: 3, CurrentRevision: currentRevision}
	read, err := workload.Read(workload.StatefulSet, builder.JSON(w.t, s))
	if err != nil {
		w.t.Fatal(err)
	}
	return read
}

// The StatefulSet controller creates a deleted pod below the partition again with the current revision.
func TestAPodBelowThePartitionIsNotDeletedAfterARollback(t *testing.T) {
	for name, tc := range map[string]struct {
		start, partition int32
		current          string
		pods, deleted    []string
	}{
		"the next pod would have the same version": {0, 4, "db-bad", []string{"db-1", "db-3", "db-4"}, []string{"db-4"}},
		"the ordinals begin at 10":                 {10, 4, "db-bad", []string{"db-11", "db-13", "db-14"}, []string{"db-14"}},
		"the next pod would have the version before, because the partition was raised during the rollout": {
			0, 4, "db-good", []string{"db-1", "db-4"}, []string{"db-1", "db-4"}},
		"without a partition": {0, 0, "db-bad", []string{"db-0", "db-4"}, []string{"db-0", "db-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.finder, w.cached = badPods{w}, w.rolledBackStatefulSet(tc.start, tc.partition, tc.current)
			for _, pod := range tc.pods {
				w.pod(pod, "u1", func(p *corev1.Pod) {
					p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-bad"}
					p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.cached, workload.StatefulSet.GroupVersionKind)}
				})
			}
			w.reconcile(w.release(w.good, 3, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
			deleted := w.deletedPods()
			slices.Sort(deleted)
			if diff := cmp.Diff(tc.deleted, deleted); diff != "" {
				t.Errorf("deleted pods, -want +got: %s", diff)
			}
		})
	}
}

// deletedPods returns the names of the pods that were deleted.
func (w *fixture) deletedPods() []string {
	var names []string
	for _, a := range w.kube.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok && a.Matches("delete", "pods") {
			names = append(names, d.GetName())
		}
	}
	return names
}
