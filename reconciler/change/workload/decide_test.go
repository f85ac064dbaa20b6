package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// recorded is a ChangeWorkload as Decide sees it.
func recorded(uid string, of types.UID, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	c := &v1alpha1.ChangeWorkload{}
	c.Name, c.UID = "sleep--x--"+uid, types.UID(uid)
	c.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", UID: of}
	c.Spec.Attempt = attempt
	c.Status.Phase = phase
	return c
}

func TestDecide(t *testing.T) {
	// A Deployment that the webhook has seen, at its second attempt.
	input := func(change func(*Input)) Input {
		in := Input{
			OptedIn: true, Kind: workload.Deployment, UID: "d", Label: "v1", Computed: "v1", RevisionCount: 1,
			Release: v1alpha1.Release{Version: "v1", Attempt: 2}, Known: true,
		}
		if change != nil {
			change(&in)
		}
		return in
	}
	running, old := recorded("now", "d", 2, v1alpha1.ReleaseRunning), recorded("old", "d", 1, v1alpha1.ReleaseSuccess)
	success, suspended := recorded("now", "d", 2, v1alpha1.ReleaseSuccess), recorded("now", "d", 2, v1alpha1.ReleaseSuspend)
	earlier, stranger := recorded("now", "d", 1, v1alpha1.ReleaseSuccess), recorded("now", "d0", 2, v1alpha1.ReleaseSuccess)
	leaving := recorded("now", "d", 1, v1alpha1.ReleaseSuccess)
	leaving.DeletionTimestamp = new(metav1.Now())
	oldLeaving := recorded("gone", "d", 1, v1alpha1.ReleaseSuspend)
	oldLeaving.DeletionTimestamp = new(metav1.Now())
	ended := metav1.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	succeeded := recorded("now", "d", 2, v1alpha1.ReleaseSuccess)
	succeeded.Status.SetConditions(apis.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue,
		LastTransitionTime: apis.VolatileTime{Inner: ended}}})
	closing := func(since time.Duration) *v1alpha1.ChangeWorkload {
		c := recorded("now", "d", 1, v1alpha1.ReleaseFailed)
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: ended.Add(-since)}, []string{v1alpha1.OrderFinalizer}
		return c
	}
	otherKind := recorded("now", "s", 2, v1alpha1.ReleaseRunning)
	otherKind.Spec.WorkloadRef.Kind = "StatefulSet"
	success.Status.SetConditions(apis.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue,
		LastTransitionTime: apis.VolatileTime{Inner: ended}}})
	open, closed := recorded("open", "d", 1, v1alpha1.ReleaseSuspend), recorded("closed", "d", 1, v1alpha1.ReleaseSuspend)
	open.Status.Order = &v1alpha1.Order{OpenedTime: &ended}
	closed.Status.Order = &v1alpha1.Order{OpenedTime: &ended, Closing: &v1alpha1.OrderClosing{AnsweredTime: new(metav1.NewMicroTime(ended.Time))}}
	unsent := recorded("unsent", "d", 1, v1alpha1.ReleaseFailed)
	unsent.Status.Announce(v1alpha1.Announcement{Verb: "failed"})
	list := func(c ...*v1alpha1.ChangeWorkload) []*v1alpha1.ChangeWorkload { return c }

	tests := map[string]struct {
		in   Input
		want Decision
	}{
		"a Deployment outside opted-in namespaces is not changed": {
			in: input(func(in *Input) { in.OptedIn, in.Known, in.Label = false, false, "" }),
		},
		"a Deployment that is being deleted is left alone": {
			in: input(func(in *Input) { in.Deleting, in.Known = true, false }),
		},
		"a workload without a template is not judged, and an Event says so": {
			in:   input(func(in *Input) { in.NoTemplate, in.Named, in.Owned = true, success, list(success, old) }),
			want: Decision{ReportNoTemplate: true, RetryAfter: eventrecorder.RepeatAfter},
		},
		"nor readmitted": {
			in:   input(func(in *Input) { in.NoTemplate, in.Known, in.Label = true, false, "" }),
			want: Decision{ReportNoTemplate: true, RetryAfter: eventrecorder.RepeatAfter},
		},
		"no Event is recorded outside opted-in namespaces": {
			in: input(func(in *Input) { in.NoTemplate, in.OptedIn = true, false }),
		},
		"without annotations it is readmitted, and nothing is created on a guess": {
			in:   input(func(in *Input) { in.Known, in.Release = false, v1alpha1.Release{} }),
			want: Decision{Readmission: ReadmissionUnversioned},
		},
		"without the label it is readmitted": {
			in:   input(func(in *Input) { in.Label = "" }),
			want: Decision{Readmission: ReadmissionUnversioned},
		},
		"when label and annotation differ it is readmitted": {
			in:   input(func(in *Input) { in.Label = "v0" }),
			want: Decision{Readmission: ReadmissionUnversioned},
		},
		"a release without a ChangeWorkload gets one": {
			in:   input(nil),
			want: Decision{Create: true},
		},
		"a baseline gets one too": {
			in:   input(func(in *Input) { in.Release.Attempt = 0 }),
			want: Decision{Create: true},
		},
		"a release gets one while that of the version before is still running": {
			in:   input(func(in *Input) { in.Owned = list(recorded("old", "d", 1, v1alpha1.ReleaseRunning)) }),
			want: Decision{Create: true},
		},
		"a running release keeps its ChangeWorkload and the history": {
			in: input(func(in *Input) { in.Named, in.Owned = running, list(running, old) }),
		},
		"a suspended release keeps the history: it is what a rollback goes to": {
			in: input(func(in *Input) { in.Named, in.Owned = suspended, list(suspended, old) }),
		},
		"a successful release deletes the history": {
			in:   input(func(in *Input) { in.Named, in.Owned = success, list(old, success) }),
			want: Decision{DeleteOlder: list(old)},
		},
		"history that is being deleted is not deleted again": {
			in: input(func(in *Input) { in.Named, in.Owned = success, list(oldLeaving, success) }),
		},
		"a version applied again is a new attempt: its ChangeWorkload is made anew": {
			in:   input(func(in *Input) { in.Named, in.Owned = earlier, list(earlier, old) }),
			want: Decision{DeleteOfSameName: earlier, Create: true},
		},
		"the ChangeWorkload of an earlier Deployment of the name is made anew": {
			in:   input(func(in *Input) { in.Named = stranger }),
			want: Decision{DeleteOfSameName: stranger, Create: true},
		},
		"a Success keeps those whose order is still open at the server": {
			in: input(func(in *Input) {
				in.Named, in.Owned, in.Now = success, list(success, open, closed, old), ended.Add(time.Minute)
			}),
			want: Decision{DeleteOlder: list(closed, old), RetryAfter: closingTime - time.Minute},
		},
		"and those whose CloudEvents were not accepted": {
			in: input(func(in *Input) {
				in.Named, in.Owned, in.Now = success, list(success, unsent, old), ended.Add(time.Minute)
			}),
			want: Decision{DeleteOlder: list(old), RetryAfter: closingTime - time.Minute},
		},
		"also a process that was not there for long": {
			in: input(func(in *Input) {
				in.Named, in.Owned, in.Now = success, list(success, open), ended.Add(time.Hour)
				in.DecidingSince = in.Now.Add(-time.Second)
			}),
			want: Decision{RetryAfter: closingGrace - time.Second},
		},
		"but not for ever": {
			in: input(func(in *Input) {
				in.Named, in.Owned, in.Now = success, list(success, open), ended.Add(closingTime)
			}),
			want: Decision{DeleteOlder: list(open)},
		},
		"those of an earlier workload are deleted whatever the state is": {
			in: input(func(in *Input) {
				in.Named, in.Owned, in.OfEarlierWorkloads = running, list(running, old), list(recorded("other", "d0", 7, v1alpha1.ReleaseSuspend), oldLeaving)
			}),
			want: Decision{DeleteOfEarlierWorkloads: list(recorded("other", "d0", 7, v1alpha1.ReleaseSuspend))},
		},
		"an old ChangeWorkload that is being deleted is waited for": {
			in: input(func(in *Input) { in.Named = leaving }),
		},
		"its order is closed meanwhile": {
			in:   input(func(in *Input) { in.Named, in.Now = closing(time.Second), ended.Time }),
			want: Decision{RetryAfter: maxClosingWait - time.Second},
		},
		"but the new release does not wait for long": {
			in:   input(func(in *Input) { in.Named, in.Now = closing(maxClosingWait), ended.Time }),
			want: Decision{RemoveFinalizer: closing(maxClosingWait)},
		},
		"the ChangeWorkload of another kind's workload is never deleted": {
			in:   input(func(in *Input) { in.Named = otherKind }),
			want: Decision{Conflict: true},
		},
		"a new default of Kubernetes, which changes the computed version, is no release": {
			in: input(func(in *Input) { in.Computed, in.Named = "v2", running }),
		},
		"a template that came past the webhook, seen by two ReplicaSets of one version, is readmitted": {
			in:   input(func(in *Input) { in.Computed, in.RevisionCount, in.Named = "v2", 2, running }),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"a template that came past the webhook while the rollout is paused or held, and has no ReplicaSet, is readmitted": {
			in:   input(func(in *Input) { in.Computed, in.StoppedBeforeReplicaSet, in.Named = "v2", true, running }),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"a template that came past the webhook, whose ReplicaSet is the only one and newer than the success, is readmitted": {
			in:   input(func(in *Input) { in.Computed, in.NewestRevision, in.Named = "v2", ended.Add(time.Second), succeeded }),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"a new default of Kubernetes after a success is no release": {
			in: input(func(in *Input) { in.Computed, in.NewestRevision, in.Named = "v2", ended.Add(-time.Second), succeeded }),
		},
		"a ReplicaSet that is newer than the success is no readmission when the version is right": {
			in: input(func(in *Input) { in.NewestRevision, in.Named = ended.Add(time.Second), succeeded }),
		},
		"a template that the webhook saw while the rollout was paused is not": {
			in: input(func(in *Input) { in.StoppedBeforeReplicaSet, in.Named = true, running }),
		},
		"a saved manifest of an earlier release came past the webhook: it is readmitted, and the newer release is kept": {
			in: input(func(in *Input) {
				in.Named, in.Owned = success, list(success, recorded("newer", "d", 3, v1alpha1.ReleaseRunning))
			}),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"also if a check of the newer release failed": {
			in: input(func(in *Input) {
				in.Named, in.Owned = running, list(running, recorded("newer", "d", 3, v1alpha1.ReleaseSuspend))
			}),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"also if the newer release has the same version": {
			in: input(func(in *Input) {
				in.Named = recorded("now", "d", 4, v1alpha1.ReleaseSuccess)
				in.Owned = list(in.Named)
			}),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"also if nothing is left of the earlier release": {
			in:   input(func(in *Input) { in.Owned = list(recorded("newer", "d", 3, v1alpha1.ReleaseSuccess)) }),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"also a baseline": {
			in: input(func(in *Input) {
				in.Release.Attempt, in.Owned = 0, list(recorded("now", "d", 0, v1alpha1.ReleaseSuccess), recorded("newer", "d", 1, v1alpha1.ReleaseSuccess))
			}),
			want: Decision{Readmission: ReadmissionTemplateMissed},
		},
		"a workload of the same name was deleted: its releases are not newer": {
			in:   input(func(in *Input) { in.OfEarlierWorkloads = list(recorded("newer", "d0", 3, v1alpha1.ReleaseRunning)) }),
			want: Decision{Create: true, DeleteOfEarlierWorkloads: list(recorded("newer", "d0", 3, v1alpha1.ReleaseRunning))},
		},
		"attempts begin again after the highest one, so it is not newer": {
			in: input(func(in *Input) {
				in.Named = success
				in.Owned = list(success, recorded("max", "d", v1alpha1.MaxAttempt, v1alpha1.ReleaseFailed), recorded("before", "d", v1alpha1.MaxAttempt-1, v1alpha1.ReleaseFailed))
			}),
			want: Decision{DeleteOlder: list(recorded("max", "d", v1alpha1.MaxAttempt, v1alpha1.ReleaseFailed), recorded("before", "d", v1alpha1.MaxAttempt-1, v1alpha1.ReleaseFailed))},
		},
		"two ReplicaSets of one version are no readmission when the version is right": {
			in: input(func(in *Input) { in.RevisionCount, in.Named = 2, running }),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Decide(tc.in)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}
