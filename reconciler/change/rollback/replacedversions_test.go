package rollback

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestTheFailedVersionsThatARepairReplaces(t *testing.T) {
	release := func(version string, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
		return &v1alpha1.ChangeWorkload{
			Spec:   v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: attempt, WorkloadRef: v1alpha1.WorkloadRef{UID: "u1"}},
			Status: v1alpha1.ChangeWorkloadStatus{Phase: phase},
		}
	}
	const success, suspended, ended, running = v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed, v1alpha1.ReleaseRunning
	v1, current := release("v1", 1, success), release("repair", 6, running)
	ofAnother := release("other", 5, suspended)
	ofAnother.Spec.WorkloadRef.UID = "u2"
	for name, tc := range map[string]struct {
		earlier []*v1alpha1.ChangeWorkload
		want    []string
	}{
		"the failed one": {[]*v1alpha1.ChangeWorkload{v1, release("v2", 2, suspended)}, []string{"v2"}},
		"a repair of it that did not succeed, too": {[]*v1alpha1.ChangeWorkload{v1, release("v2", 2, suspended), release("v3", 3, ended)}, []string{"v3", "v2"}},
		"a failed repair, too":                     {[]*v1alpha1.ChangeWorkload{release("v3", 3, suspended), v1, release("v2", 2, suspended)}, []string{"v3", "v2"}},
		"none before the failed one":               {[]*v1alpha1.ChangeWorkload{v1, release("v2", 2, ended), release("v3", 3, suspended)}, []string{"v3"}},
		"none before a success":                    {[]*v1alpha1.ChangeWorkload{release("v2", 2, suspended), release("v3", 3, success)}, nil},
		"none if a person suspended the workload":  {[]*v1alpha1.ChangeWorkload{v1, release("v2", 2, running)}, nil},
		"none of another workload":                 {[]*v1alpha1.ChangeWorkload{v1, ofAnother}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range sinceSuccess(append(tc.earlier, current), current) {
				got = append(got, v.version)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("versions %v, want %v", got, tc.want)
			}
		})
	}
}

// versionsOfPods is a Finder for which pods have versions by their names.
type versionsOfPods struct {
	*fixture
	versions map[string]string
}

// HasVersion implements Finder.
func (f versionsOfPods) HasVersion(_ *workload.Workload, p *corev1.Pod, version string) bool {
	return f.versions[p.Name] == version
}

func TestAnAdmittedRepairReplacesPodsOfTheFailedVersionThatAreNotReady(t *testing.T) {
	const suspend = "1700000000"
	for name, tc := range map[string]struct {
		bypass   v1alpha1.Bypass
		onDelete bool
		deleted  []string
	}{
		"a repair":                               {v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: suspend, Attempt: 3}, false, []string{"db-3"}},
		"a rollback":                             {v1alpha1.Bypass{Kind: v1alpha1.BypassRollback, Suspend: suspend, Attempt: 3}, false, []string{"db-3"}},
		"not by the bypass of another attempt":   {v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: suspend, Attempt: 2}, false, nil},
		"not after the suspension":               {v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: suspend, Attempt: 3, Ended: true}, false, nil},
		"not if its controller replaces no pods": {v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: suspend, Attempt: 3}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			s := w.rolledBackStatefulSet(0, 0, "db-good")
			delete(s.Annotations, v1alpha1.RollbackAnnotation)
			s.Labels, s.OnDelete = map[string]string{v1alpha1.SuspendLabel: suspend}, tc.onDelete
			maps.Copy(s.Annotations, releaseAnnotations("repair", 3))
			s.Annotations[v1alpha1.BypassAnnotation] = string(builder.JSON(t, tc.bypass))
			w.cached = s
			versions := map[string]string{"db-0": w.good, "db-1": "unknown", "db-2": w.bad, "db-3": w.bad, "db-4": "repair", "db-now": w.bad}
			w.finder = versionsOfPods{w, versions} // pod db-now has the present template, and its version is uncertain
			for pod, version := range versions {
				w.pod(pod, "u1", func(p *corev1.Pod) {
					p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-" + version}
					if pod == "db-now" {
						p.Labels[appsv1.ControllerRevisionHashLabelKey] = pod
					}
					p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, workload.StatefulSet.GroupVersionKind)}
					if pod == "db-2" {
						isReady(p)
					}
				})
			}
			w.release(w.good, 1, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
			w.release(w.bad, 2, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed)
			w.reconcile(w.release("repair", 3, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
			if diff := cmp.Diff(tc.deleted, w.deletedPods()); diff != "" {
				t.Errorf("deleted pods, -want +got: %s", diff)
			}
		})
	}
}

// The record of a version is replaced when it is released again, so the success of the version that most pods have is forgotten.
func TestARepairKeepsPodsOfTheVersionBeforeTheFailedOne(t *testing.T) {
	const suspend = "1700000000"
	w := newFixture(t)
	s := w.rolledBackStatefulSet(0, 0, "db-good")
	delete(s.Annotations, v1alpha1.RollbackAnnotation)
	s.Labels = map[string]string{v1alpha1.SuspendLabel: suspend}
	maps.Copy(s.Annotations, releaseAnnotations("repair", 4))
	s.Annotations[v1alpha1.BypassAnnotation] = string(builder.JSON(t, v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: suspend, Attempt: 4}))
	w.cached = s
	returned := metav1.Now()
	pods := map[string]struct {
		version, revision string
		created           metav1.Time
	}{
		"db-0": {w.good, "db-good", metav1.NewTime(returned.Add(-time.Hour))},
		"db-3": {w.good, "db-good", returned},
		"db-4": {w.bad, "db-bad", metav1.NewTime(returned.Add(-time.Minute))},
	}
	versions := map[string]string{}
	for name, pod := range pods {
		versions[name] = pod.version
		w.pod(name, "u1", func(p *corev1.Pod) {
			p.CreationTimestamp = pod.created
			p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: pod.revision}
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, workload.StatefulSet.GroupVersionKind)}
		})
	}
	w.finder = versionsOfPods{w, versions}
	w.release(w.bad, 2, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed)
	w.release(w.good, 3, v1alpha1.ReleaseFailed, v1alpha1.ReasonSuperseded).CreationTimestamp = returned
	w.reconcile(w.release("repair", 4, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
	if diff := cmp.Diff([]string{"db-3", "db-4"}, w.deletedPods()); diff != "" {
		t.Error(diff)
	}
}
