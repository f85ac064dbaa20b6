package judge_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// newStatefulSetFixture returns a release of an Advanced StatefulSet, which updates pods in place.
func newStatefulSetFixture(t *testing.T, pods ...*corev1.Pod) *fixture {
	t.Helper()
	return newWorkloadFixture(t, "apps.kruise.io/v1beta1", pods...)
}

// newWorkloadFixture returns a release of a StatefulSet web with pods, which was admitted two minutes
// before its first batch. The batch has pod web-2.
func newWorkloadFixture(t *testing.T, apiVersion string, pods ...*corev1.Pod) *fixture {
	t.Helper()
	f := newFixture(t, webTraffic{&traffic{oldFails: 1}}.source, newBatch(1, func(b *v1alpha1.ChangePod) {
		b.Spec.PodInfos = []v1alpha1.PodSummary{{Pod: "web-2", UID: "web-2"}}
	}))
	release := f.ChangeWorkload(ft.Release)
	release.CreationTimestamp = metav1.NewTime(ft.Now().Add(-2 * time.Minute))
	release.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: apiVersion, Kind: "StatefulSet", Name: "web", UID: "web"}
	f.Write(release)
	for _, pod := range pods {
		if err := f.Kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// webTraffic answers with the counters of an old pod as those of web-2.
type webTraffic struct{ *traffic }

func (w webTraffic) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	all, err := w.traffic.Range(ctx, expression, from, to, step)
	for _, s := range all {
		if s.Labels["pod"] == "sleep-old-a" {
			s.Labels["pod"] = "web-2"
			return []samples.Series{s}, err
		}
	}
	return nil, err
}

func (w webTraffic) source(context.Context) (judge.Source, error) {
	return judge.Source{Reader: w, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
}

// at returns a time relative to the first batch.
func at(d time.Duration) metav1.Time { return metav1.NewTime(ft.Now().Add(d)) }

// running returns a container that started at a time.
func running(since time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(since)}}}
}

// crashed returns a container that waits for its next start.
func crashed(since time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(since)}},
	}
}

// restarted returns a container with its last two starts.
func restarted(first, last time.Duration) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: running(last).State, LastTerminationState: crashed(first).LastTerminationState}
}

// ofStatefulSet returns a pod of StatefulSet web.
func ofStatefulSet(name, revision string, created time.Duration, containers ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ft.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(ft.Now().Add(created)),
			Labels:          map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "web", Controller: new(true)}},
		},
		Status: corev1.PodStatus{ContainerStatuses: containers},
	}
}

func TestSinceWhenAPodWithTheNameOfAnEarlierOneIsNew(t *testing.T) {
	const days = -48 * time.Hour
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want map[string]metav1.Time
	}{
		"replaced":                        {ofStatefulSet("web-2", "new", -time.Minute, running(-50*time.Second)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"replaced, and restarted since":   {ofStatefulSet("web-2", "new", -time.Minute, running(0)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"updated in place":                {ofStatefulSet("web-2", "new", days, running(days), running(-time.Minute)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"updated in place, and restarts":  {ofStatefulSet("web-2", "new", days, running(days), crashed(-time.Minute)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"updated in place, and restarted": {ofStatefulSet("web-2", "new", days, restarted(-time.Minute, 0), running(-30*time.Second)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"updated in place, no restart":    {ofStatefulSet("web-2", "new", days, running(days), restarted(days, days/2)), nil},
		"scaled up, updated in place":     {ofStatefulSet("web-2", "new", -5*time.Minute, restarted(-5*time.Minute, -time.Minute)), map[string]metav1.Time{"web-2": at(-time.Minute)}},
		"scaled up, no restart":           {ofStatefulSet("web-2", "new", -5*time.Minute, running(-5*time.Minute)), nil},
		"older than the release":          {ofStatefulSet("web-2", "new", days), nil},
		"of the old version":              {ofStatefulSet("web-1", "old", -time.Minute), nil},
		"claimed, and not found any more": {ofStatefulSet("web-1", "old", days), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, newStatefulSetFixture(t, c.pod).compared(t).NewSince); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The release was admitted minutes after the controller of StatefulSets had replaced the pod, for example
// because the webhook was unreachable: the pod is no reference for itself.
func TestAPodThatWasReplacedBeforeItsReleaseWasAdmittedIsNew(t *testing.T) {
	for _, created := range []time.Duration{-5 * time.Minute, -48 * time.Hour} {
		f := newWorkloadFixture(t, "apps/v1", ofStatefulSet("web-2", "new", created, running(created)))
		if diff := cmp.Diff(map[string]metav1.Time{"web-2": at(created)}, f.compared(t).NewSince); diff != "" {
			t.Error(diff)
		}
	}
}

// While a pod is replaced again, its name has no pod. The time of its first pod is that of the record.
func TestTheTimeOfADeletedPodIsKeptInTheRecord(t *testing.T) {
	pod := ofStatefulSet("web-2", "new", -time.Minute)
	f := newStatefulSetFixture(t, pod, ofStatefulSet("web-1", "old", -time.Hour))
	want := f.compared(t).NewSince
	if len(want) != 1 {
		t.Fatalf("times %v, want that of web-2", want)
	}
	if err := f.Kube.CoreV1().Pods(ft.Namespace).Delete(t.Context(), "web-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
	if diff := cmp.Diff(want, f.compared(t).NewSince); diff != "" {
		t.Error(diff)
	}
}

// The status of a pod has the last two starts of a container only.
func TestTheTimeOfAnUpdateInPlaceStaysAfterRestarts(t *testing.T) {
	const days = -48 * time.Hour
	f := newStatefulSetFixture(t, ofStatefulSet("web-2", "new", days, restarted(days, -time.Minute)))
	want := f.compared(t).NewSince
	if diff := cmp.Diff(map[string]metav1.Time{"web-2": at(-time.Minute)}, want); diff != "" {
		t.Fatal(diff)
	}
	again := ofStatefulSet("web-2", "new", days, restarted(5*time.Second, 10*time.Second))
	if _, err := f.Kube.CoreV1().Pods(ft.Namespace).Update(t.Context(), again, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
	if diff := cmp.Diff(want, f.compared(t).NewSince); diff != "" {
		t.Error(diff)
	}
}

// An update of labels in place restarts no container, so the pods are compared with the time before
// the release.
func TestAReleaseInPlaceWithoutRestartsPasses(t *testing.T) {
	const days = -48 * time.Hour
	f := newStatefulSetFixture(t, ofStatefulSet("web-2", "new", days, running(days)))
	if r := f.lookUntilFinal(t); r.Verdict != judgev1alpha1.VerdictPass {
		t.Errorf("%s (%s: %s), want a pass", r.Verdict, r.Reason, r.Message)
	}
}
