package rollback

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	"knative.dev/pkg/controller"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// podsOf is a Finder for which every pod has the version.
type podsOf struct {
	*fixture
	version string
}

// HasVersion implements Finder.
func (f podsOf) HasVersion(_ *workload.Workload, _ *corev1.Pod, version string) bool {
	return f.version == version
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
	s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(partition)}
	s.Status = appsv1.StatefulSetStatus{Replicas: 5, UpdatedReplicas: 0, AvailableReplicas: 3, CurrentRevision: currentRevision, UpdateRevision: "db-now"}
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
			w.finder, w.cached = podsOf{w, w.bad}, w.rolledBackStatefulSet(tc.start, tc.partition, tc.current)
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

// OpenKruise makes a pod not Ready before it updates it in place.
func TestAPodOfOpenKruiseWhoseContainersAreReadyIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		group   string
		deleted []string
	}{
		"of OpenKruise": {"apps.kruise.io", []string{"db-0"}},
		"of Kubernetes, which updates none in place":  {"apps", []string{"db-0", "db-1"}},
		"of another kind, whose rollout may not wait": {"example.com", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.finder, w.cached = podsOf{w, w.bad}, w.rolledBackStatefulSet(0, 0, "db-good")
			w.cached.Kind.Group = tc.group
			for pod, ready := range map[string]bool{"db-0": false, "db-1": true} {
				w.pod(pod, "u1", func(p *corev1.Pod) {
					p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-bad"}
					p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.cached, w.cached.Kind.GroupVersionKind)}
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: ready}}
				})
			}
			w.reconcile(w.release(w.good, 3, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
			if diff := cmp.Diff(tc.deleted, w.deletedPods()); diff != "" {
				t.Errorf("deleted pods, -want +got: %s", diff)
			}
		})
	}
}

// The StatefulSet controller copies the annotations of the former template to the ControllerRevision of a template that
// the webhook missed, and the readmission does not change them.
func TestABlockingPodOfATemplateThatTheWebhookMissedIsDeleted(t *testing.T) {
	w := newFixture(t)
	ctx, _ := rtesting.SetupFakeContext(t)
	workloadinformertest.Run(ctx, t)
	finder, err := releasefinder.New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.finder, w.cached = finder, w.rolledBackStatefulSet(0, 0, "db-good")
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(w.cached, workload.StatefulSet.GroupVersionKind)}
	for name, version := range map[string]string{"db-good": w.good, "db-bad": w.bad} {
		annotations := releaseAnnotations(w.good, 1)
		annotations[releasefinder.ComputedKey] = version
		if err := revisioninformer.Get(ctx).Informer().GetIndexer().Add(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", Annotations: annotations, OwnerReferences: owner}}); err != nil {
			t.Fatal(err)
		}
	}
	for pod, revision := range map[string]string{"db-3": "db-good", "db-4": "db-bad"} {
		w.pod(pod, "u1", func(p *corev1.Pod) {
			p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}
			p.OwnerReferences = owner
		})
	}
	w.reconcile(w.release(w.good, 3, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
	if diff := cmp.Diff([]string{"db-4"}, w.deletedPods()); diff != "" {
		t.Errorf("deleted pods, -want +got: %s", diff)
	}
}

// A budget or a policy denies the deletion of one pod.
func TestADeniedDeletionOfABlockingPodDelaysNothingElse(t *testing.T) {
	w := newFixture(t)
	w.finder, w.cached = podsOf{w, "worse"}, w.rolledBackStatefulSet(0, 0, "db-bad")
	// The Deployment of the fixture stands for the StatefulSet: its attempt 2 was a rollback.
	w.cached.Annotations = releaseAnnotations(w.bad, 2)
	w.cached.Annotations[v1alpha1.RollbackAnnotation] = string(builder.JSON(t, v1alpha1.Rollback{
		Kind: v1alpha1.RollbackRequested, FromVersion: "worse", FromAttempt: 1, ToVersion: w.bad, Attempt: 2}))
	w.cached.Annotations[v1alpha1.RollbackRequestAnnotation] = `{"user":"ann","time":null,"attempt":2}`
	for _, pod := range []string{"db-0", "db-1"} {
		w.pod(pod, "u1", func(p *corev1.Pod) {
			p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-bad"}
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.cached, workload.StatefulSet.GroupVersionKind)}
		})
	}
	w.kube.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if name := a.(clienttesting.DeleteAction).GetName(); name == "db-0" {
			return true, nil, apierrs.NewForbidden(corev1.Resource("pods"), name, errors.New("denied by a budget"))
		}
		return false, nil, nil
	})
	err := w.ReconcileKind(controller.WithEventRecorder(t.Context(), w.recorder), w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
	if !apierrs.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]string{"db-0", "db-1"}, w.deletedPods()); diff != "" {
		t.Errorf("deletions that were tried, -want +got: %s", diff)
	}
	w.at(w.good, 3)
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
