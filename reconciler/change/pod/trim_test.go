package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestTrimKeepsOfAPodWhatReconcilersRead(t *testing.T) {
	created, deleted := metav1.Unix(1700000000, 0), metav1.Unix(1700000100, 0)
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 3, GenerateName: "p-",
			Labels:            map[string]string{"app": "sleep", v1alpha1.FinishedLabel: v1alpha1.FinishedValue},
			Annotations:       map[string]string{"large": "value"},
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "r", Controller: new(true)}},
			Finalizers:        []string{"example.com/f"},
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
			CreationTimestamp: created, DeletionTimestamp: &deleted,
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Hostname: "h", HostnameOverride: new("o"), ServiceAccountName: "default",
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes:    []corev1.Volume{{Name: "v"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "192.0.2.1", Message: "m",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", Ready: true, RestartCount: 4, Image: "i", ImageID: "sha256:0",
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			}},
		},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "default", UID: "u", ResourceVersion: "7",
			Labels:            map[string]string{v1alpha1.FinishedLabel: v1alpha1.FinishedValue},
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "r", Controller: new(true)}},
			CreationTimestamp: created, DeletionTimestamp: &deleted,
		},
		Spec: corev1.PodSpec{NodeName: "n", Hostname: "h", HostnameOverride: new("o")},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", Ready: true, RestartCount: 4,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			}},
		},
	}
	checkTrim(t, whole, want)
}

func TestTrimKeepsTheInitContainersOfAPendingPodAndTheSidecarsThatWait(t *testing.T) {
	ended, crashed := metav1.Unix(1700000000, 0), metav1.Unix(1700000050, 0)
	pod := func(phase corev1.PodPhase, init ...corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, InitContainerStatuses: init, ContainerStatuses: []corev1.ContainerStatus{}}}
	}
	terminated := func(at metav1.Time) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{FinishedAt: at}
	}
	init := []corev1.ContainerStatus{
		{Name: "a", Ready: true, Image: "i", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended, Reason: "Completed", ContainerID: "x"}}},
		{Name: "b", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: crashed}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: crashed, Message: "m"}}},
		{Name: "c", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "m"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: crashed, Message: "m"}}},
	}
	waiting := corev1.ContainerStatus{Name: "c", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: terminated(crashed)}}
	for phase, want := range map[corev1.PodPhase]*corev1.Pod{
		corev1.PodRunning: pod(corev1.PodRunning, waiting),
		corev1.PodFailed:  pod(corev1.PodFailed),
		corev1.PodPending: pod(corev1.PodPending,
			corev1.ContainerStatus{Name: "a", Ready: true, State: corev1.ContainerState{Terminated: terminated(ended)}},
			corev1.ContainerStatus{Name: "b", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: terminated(crashed)}}, waiting),
	} {
		t.Run(string(phase), func(t *testing.T) {
			checkTrim(t, pod(phase, init...), want)
		})
	}
}

func TestTrimKeepsWhetherAPendingPodIsScheduled(t *testing.T) {
	pod := func(phase corev1.PodPhase, conditions ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: conditions, ContainerStatuses: []corev1.ContainerStatus{}}}
	}
	at := metav1.Unix(1700000000, 0)
	gated := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated, LastTransitionTime: at}
	whole := gated
	whole.Message = "Scheduling is blocked due to non-empty scheduling gates"
	pending := pod(corev1.PodPending, gated)
	pending.Status.InitContainerStatuses = []corev1.ContainerStatus{}
	checkTrim(t, pod(corev1.PodPending, whole), pending)
	checkTrim(t, pod(corev1.PodRunning, whole), pod(corev1.PodRunning))
}

func TestTrimReplicaSetDropsTheTemplate(t *testing.T) {
	whole := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "rs", Namespace: "default", UID: "r", Labels: map[string]string{"app": "sleep"},
			Annotations: map[string]string{
				v1alpha1.VersionKey: "v1", v1alpha1.AttemptAnnotation: "2", "deployment.kubernetes.io/revision": "3", "rollout.argoproj.io/revision": "4",
				"of-somebody": "else",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(3)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}},
		},
		Status: appsv1.ReplicaSetStatus{ReadyReplicas: 2},
	}
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "rs", Namespace: "default", UID: "r", Labels: map[string]string{"app": "sleep"},
			Annotations: map[string]string{
				v1alpha1.VersionKey: "v1", v1alpha1.AttemptAnnotation: "2", "deployment.kubernetes.io/revision": "3", "rollout.argoproj.io/revision": "4",
			},
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: new(int32(3))},
		Status: appsv1.ReplicaSetStatus{ReadyReplicas: 2},
	}
	got, err := TrimReplicaSet(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// The label that the controller of Deployments adds is not part of the version. The informer may trim an object twice.
func TestTrimReplicaSetKeepsTheVersionOfTheTemplateOfADeployment(t *testing.T) {
	d := builder.Deployment("web", 1)
	version := builder.Version(d)
	owned := func(apiVersion, kind string) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Annotations:     map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "2", releasefinder.ComputedKey: "of a user"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Controller: new(true)}},
			},
			Spec: appsv1.ReplicaSetSpec{Template: *d.Spec.Template.DeepCopy()},
		}
		rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc"
		return rs
	}
	baseline := owned("apps/v1", "Deployment")
	delete(baseline.Annotations, v1alpha1.VersionKey)
	for name, tc := range map[string]struct {
		rs   *appsv1.ReplicaSet
		want string
	}{
		"of a Deployment":   {owned("apps/v1", "Deployment"), version},
		"of a custom kind":  {owned("argoproj.io/v1alpha1", "Rollout"), ""},
		"without a release": {baseline, ""},
	} {
		for range 2 {
			if _, err := TrimReplicaSet(tc.rs); err != nil {
				t.Fatal(err)
			}
			if got := tc.rs.Annotations[releasefinder.ComputedKey]; got != tc.want {
				t.Errorf("%s: %q, want %q", name, got, tc.want)
			}
		}
	}
}

func TestTrimDoesNotChangeOtherObjects(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/p"}
	for name, trim := range map[string]cache.TransformFunc{"pods": Trim, "ReplicaSets": TrimReplicaSet} {
		t.Run(name, func(t *testing.T) {
			got, err := trim(tombstone)
			if diff := cmp.Diff(any(tombstone), got); err != nil || diff != "" {
				t.Error("(-want +got):", err, diff)
			}
		})
	}
}

// checkTrim fails unless the trimmed pod is as wanted, and a second trim changes nothing.
func checkTrim(t *testing.T, whole, want *corev1.Pod) {
	t.Helper()
	once, err := Trim(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error("(-want +got):", diff)
	}
	twice, err := Trim(once.(*corev1.Pod).DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Error("a second trim changes the pod (-once +twice):", diff)
	}
}
