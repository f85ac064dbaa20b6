package functionstest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Names of the release in the tests.
const (
	Namespace = "default"
	Version   = "0123456789abcdef0123456789abcdef"
	Release   = "sleep--x--" + Version
	OrderID   = "c/default/Deployment/sleep/" + Version + "/1"
)

// Now returns the time of the tests' clock.
func Now() time.Time { return time.Date(2026, 5, 9, 12, 0, 0, 0, time.UTC) }

// NewRelease returns a ChangeWorkload whose order is open.
func NewRelease(edit ...func(*v1alpha1.ChangeWorkload)) *v1alpha1.ChangeWorkload {
	opened := metav1.NewTime(Now().Add(-time.Minute))
	w := &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: Release, UID: "release", ResourceVersion: "1",
			Labels: map[string]string{
				v1alpha1.VersionKey: Version, v1alpha1.DeploymentNameLabel: "sleep",
				v1alpha1.OrderLabel: v1alpha1.OrderHash(OrderID),
			},
		},
		Spec: v1alpha1.ChangeWorkloadSpec{
			ChangeWorkloadID: Release, ServiceName: "sleep", Reversion: Version, CountThreshold: 1, AppName: "sleep",
			WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "deployment"},
			Attempt:     1, OrderID: OrderID,
		},
		Status: v1alpha1.ChangeWorkloadStatus{
			Phase: v1alpha1.ReleaseRunning,
			Order: &v1alpha1.Order{ID: "order-1", OpenedTime: &opened},
		},
	}
	for _, e := range edit {
		e(w)
	}
	return w
}

// BatchName returns the name of the release's nth batch, from 1.
func BatchName(n int) string { return v1alpha1.ChangePodName(Release, n) }

// NewBatch returns the ChangePod of the release's nth batch, from 1.
func NewBatch(n int, pods []string, edit ...func(*v1alpha1.ChangePod)) *v1alpha1.ChangePod {
	p := &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: BatchName(n), UID: types.UID(fmt.Sprintf("batch-%d", n)), ResourceVersion: "1",
			Labels:          map[string]string{v1alpha1.VersionKey: Version, v1alpha1.DeploymentNameLabel: "sleep"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ChangeWorkload", Name: Release, UID: "release"}},
		},
		Spec: v1alpha1.ChangePodSpec{ChangeWorkloadID: Release, BatchNo: int32(n - 1)}, //nolint:gosec // n is small
	}
	for _, pod := range pods {
		p.Spec.PodInfos = append(p.Spec.PodInfos, v1alpha1.PodSummary{Pod: pod, Namespace: Namespace, UID: types.UID("uid-" + pod), IP: "10.0.0.1"})
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

// Started returns an edit: the start of the batch was answered some time ago.
func Started(node string, ago time.Duration) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		at := metav1.NewMicroTime(Now().Add(-ago))
		p.Status.ChangePodID = node
		p.Status.Submissions = append(p.Status.Submissions, v1alpha1.Submission{
			Stage: v1alpha1.StagePre, IntentTime: at, Attempts: 1, AnsweredTime: &at,
		})
	}
}

// Intent returns an edit: an intent for a call was recorded some time ago.
func Intent(stage v1alpha1.Stage, ago time.Duration) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Submissions = append(p.Status.Submissions, v1alpha1.Submission{
			Stage: stage, IntentTime: metav1.NewMicroTime(Now().Add(-ago)), Attempts: 1,
		})
	}
}

// Answered returns an edit: the last submission was answered some time ago.
func Answered(ago time.Duration) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Submissions[len(p.Status.Submissions)-1].AnsweredTime = new(metav1.NewMicroTime(Now().Add(-ago)))
	}
}

// Resumed returns an edit: the check of the last submission was begun again.
func Resumed(times int32) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) { p.Status.Submissions[len(p.Status.Submissions)-1].Resumptions = times }
}

// StartedAgain returns an edit: the start was repeated after an answer with this node,
// and answered with another node unless that is "".
func StartedAgain(earlier, node string) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		s := &p.Status.Submissions[len(p.Status.Submissions)-1]
		first := s.IntentTime
		s.FirstIntentTime, s.Attempts, s.Resumptions, s.EarlierNodes = &first, 2, 1, []string{earlier}
		if node == "" {
			s.AnsweredTime = nil
			return
		}
		p.Status.ChangePodID = node
	}
}

// CallFailed returns an edit: the last submission has an error with the reason.
func CallFailed(reason string) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Submissions[len(p.Status.Submissions)-1].Error = &v1alpha1.ServerError{Reason: reason, Message: "m", Time: metav1.NewTime(Now())}
	}
}

// Judged returns an edit: the batch has a verdict of the stage.
func Judged(stage v1alpha1.Stage, verdict string) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Verdicts = append(p.Status.Verdicts, v1alpha1.StageVerdict{
			Stage: stage, Verdict: verdict, NodeID: p.Status.ChangePodID, Time: metav1.NewMicroTime(Now().Add(-time.Second)),
		})
	}
}

// Unconfirmed returns an edit: the batch has a pass without rules of the stage.
func Unconfirmed(stage v1alpha1.Stage, contradicted bool) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		Judged(stage, "pass")(p)
		v := &p.Status.Verdicts[len(p.Status.Verdicts)-1]
		v.UnconfirmedPass, v.Contradicted = true, contradicted
	}
}

func labelsOf(p v1alpha1.ChangePod) labels.Set { return p.Labels }
