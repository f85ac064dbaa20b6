package perf

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// second returns a time of the tests.
func second(n int) time.Time { return time.Unix(int64(n), 0) }

func podIn(uid types.UID, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: uid},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func batchOf(uid types.UID, verdicts ...v1alpha1.StageVerdict) *v1alpha1.ChangePod {
	return &v1alpha1.ChangePod{
		Spec:   v1alpha1.ChangePodSpec{PodInfos: []v1alpha1.PodSummary{{UID: uid}}},
		Status: v1alpha1.ChangePodStatus{Verdicts: verdicts},
	}
}

func TestTheFirstTimeOfEachStepOfANewPodCounts(t *testing.T) {
	pre, post := v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "pass"}, v1alpha1.StageVerdict{Stage: v1alpha1.StagePost, Verdict: "pass"}
	unconfirmed := post
	unconfirmed.UnconfirmedPass = true
	j := newJudging()
	j.seePod(watch.Added, podIn("new", corev1.ConditionFalse), second(1))
	j.seePod(watch.Modified, podIn("new", corev1.ConditionTrue), second(2))
	j.seePod(watch.Modified, podIn("new", corev1.ConditionTrue), second(3))
	j.seeBatch(watch.Added, batchOf("new"), second(4))
	j.seeBatch(watch.Modified, batchOf("new", pre), second(5))
	j.seeBatch(watch.Modified, batchOf("new", pre, unconfirmed), second(6))
	if got := j.judged(); len(got) > 0 {
		t.Error("a pod is judged by an unconfirmed pass:", got)
	}
	j.seeBatch(watch.Modified, batchOf("new", pre, post), second(7))
	j.seeBatch(watch.Modified, batchOf("new", pre, post), second(8))
	// A pod that existed before, and one without a verdict.
	j.seePod(watch.Modified, podIn("old", corev1.ConditionTrue), second(2))
	j.seeBatch(watch.Modified, batchOf("old", pre, post), second(7))
	j.seePod(watch.Added, podIn("unjudged", corev1.ConditionTrue), second(2))
	j.seeBatch(watch.Added, batchOf("unjudged"), second(4))
	want := []judgedPod{{Created: true, Ready: second(2), Batch: second(4), Pre: second(5), Post: second(7)}}
	if diff := cmp.Diff(want, j.judged()); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyNewReleasesEnd(t *testing.T) {
	release := func(uid types.UID, phase v1alpha1.ReleasePhase, unjudged int32) *v1alpha1.ChangeWorkload {
		return &v1alpha1.ChangeWorkload{
			ObjectMeta: metav1.ObjectMeta{UID: uid},
			Status:     v1alpha1.ChangeWorkloadStatus{Phase: phase, Counts: v1alpha1.PodCounts{Unjudged: unjudged}},
		}
	}
	j := newJudging()
	j.seeRelease(watch.Modified, release("old", v1alpha1.ReleaseSuccess, 0), second(1))
	j.seeRelease(watch.Added, release("running", v1alpha1.ReleaseRunning, 0), second(1))
	j.seeRelease(watch.Added, release("new", v1alpha1.ReleaseInit, 0), second(1))
	j.seeRelease(watch.Modified, release("new", v1alpha1.ReleaseSuccess, 1), second(2))
	j.seeRelease(watch.Modified, release("new", v1alpha1.ReleaseSuccess, 2), second(3))
	want := []judgedRelease{{Created: true, Success: second(2), Unjudged: 2}}
	if diff := cmp.Diff(want, j.ended()); diff != "" {
		t.Error(diff)
	}
}
