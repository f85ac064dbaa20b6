package perf

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// judging records when watches first showed the steps of new pods and releases. All times are of one clock, which
// is finer than the seconds in the conditions of a pod. Watches of different kinds may arrive in any order.
type judging struct {
	mu       sync.Mutex
	pods     map[types.UID]*judgedPod
	releases map[types.UID]*judgedRelease
}

// judgedPod has the steps of a pod. A time is zero until its step was seen.
type judgedPod struct {
	// Created: the pod was created while it was watched. Other pods do not count.
	Created bool
	// Batch is the creation of the ChangePod; Pre and Post are the stored verdicts.
	Ready, Batch, Pre, Post time.Time
}

// judgedRelease is the last state of a release.
type judgedRelease struct {
	Created  bool
	Success  time.Time
	Unjudged int
	// NotSucceeded is Suspend or Failed if the release had this phase, or empty.
	NotSucceeded v1alpha1.ReleasePhase
}

func newJudging() *judging {
	return &judging{pods: map[types.UID]*judgedPod{}, releases: map[types.UID]*judgedRelease{}}
}

func (j *judging) seePod(e watch.EventType, p *corev1.Pod, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := recordOf(j.pods, p.UID)
	seen.Created = seen.Created || e == watch.Added
	if workload.PodReady(p) {
		first(&seen.Ready, at)
	}
}

func (j *judging) seeBatch(e watch.EventType, c *v1alpha1.ChangePod, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range c.Spec.PodInfos {
		seen := recordOf(j.pods, p.UID)
		if e == watch.Added {
			first(&seen.Batch, at)
		}
		for stage, into := range map[v1alpha1.Stage]*time.Time{v1alpha1.StagePre: &seen.Pre, v1alpha1.StagePost: &seen.Post} {
			if c.Status.VerdictOf(stage).Precedence() >= v1alpha1.PrecedencePass {
				first(into, at)
			}
		}
	}
}

func (j *judging) seeRelease(e watch.EventType, c *v1alpha1.ChangeWorkload, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := recordOf(j.releases, c.UID)
	seen.Created = seen.Created || e == watch.Added
	seen.Unjudged = int(c.Status.Counts.Unjudged)
	switch c.Status.Phase {
	case v1alpha1.ReleaseSuccess:
		first(&seen.Success, at)
	case v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed:
		seen.NotSucceeded = c.Status.Phase
	}
}

// judged returns the new pods that were Ready and have a POST verdict.
func (j *judging) judged() (all []judgedPod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pods {
		if p.Created && !p.Ready.IsZero() && !p.Post.IsZero() {
			all = append(all, *p)
		}
	}
	return all
}

// ended returns the new releases that were a Success, Suspend or Failed.
func (j *judging) ended() (all []judgedRelease) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.releases {
		if r.Created && (!r.Success.IsZero() || r.NotSucceeded != "") {
			all = append(all, *r)
		}
	}
	return all
}

func recordOf[T any](all map[types.UID]*T, uid types.UID) *T {
	if all[uid] == nil {
		all[uid] = new(T)
	}
	return all[uid]
}

// first sets a time that was not set before.
func first(t *time.Time, at time.Time) {
	if t.IsZero() {
		*t = at
	}
}
