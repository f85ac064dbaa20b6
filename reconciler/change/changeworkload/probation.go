package changeworkload

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// Distances between two looks during probation. A look compares the time since the previous
// one, at most judge.MaxProbationWindow, so no distance is longer than that.
const (
	firstLookDistance = 10 * time.Minute
	maxLookDistance   = time.Hour
)

// Intervals between two wake-ups for the same look. They are longer than those of the analysis:
// the release has succeeded.
const (
	minProbationWakeUp = time.Minute
	maxProbationWakeUp = 10 * time.Minute
)

// maxProbationMessage is the limit of the schema in bytes.
const maxProbationMessage = 1024

// probationOf derives the probation of a release from the time of its success, the judges of its
// batches, and the record of function judge. phase is that of this decision.
func probationOf(in Input, phase v1alpha1.ReleasePhase) *v1alpha1.Probation {
	c := in.ChangeWorkload
	before, batch := c.Status.Probation, probationBatch(in.ChangePods)
	current := isCurrent(in)
	switch {
	case !current && !replaced(in):
		return before // the cache is stale
	case batch == nil && before != nil:
		return &v1alpha1.Probation{EndTime: before.EndTime, Looks: before.Looks, Message: before.Message}
	case batch == nil:
		return nil
	}
	length := time.Duration(probationSeconds(batch)) * time.Second
	next := &v1alpha1.Probation{}
	switch {
	case before != nil:
		next.EndTime = before.EndTime
	case phase == v1alpha1.ReleaseSuccess && c.SucceededWithPods() && current && !batch.JudgedByPerson():
		next.EndTime = metav1.NewTime(time.Unix(c.Status.EntryTimeUnix, 0).Add(length))
	default:
		return nil
	}
	last, final := next.EndTime.Add(-length), false
	if r := batch.Status.Probation; r != nil {
		next.Looks, next.Message = r.Looks, text.Truncate(r.Reason+": "+r.Message, maxProbationMessage)
		last, final = r.LookTime.Time, r.Final
	}
	if phase == v1alpha1.ReleaseSuccess && current && !final && !batch.JudgedByPerson() {
		next.NextLookTime = new(metav1.NewTime(deadline.Earliest(last.Add(lookDistance(next.Looks)), next.EndTime.Time)))
	}
	return next
}

// lookDistance is the time between a look and the next one, given how many looks were made.
func lookDistance(looks int32) time.Duration {
	distance := firstLookDistance
	for range looks {
		if distance *= 2; distance >= maxLookDistance {
			return maxLookDistance
		}
	}
	return distance
}

// probationBatch returns the batch that has the record of the probation: the first one whose
// judge has a probation. Nil means that the release has none.
func probationBatch(batches []*v1alpha1.ChangePod) *v1alpha1.ChangePod {
	var first *v1alpha1.ChangePod
	for _, c := range batches {
		if probationSeconds(c) > 0 && (first == nil || v1alpha1.ChangePodIndex(c.Name) < v1alpha1.ChangePodIndex(first.Name)) {
			first = c
		}
	}
	return first
}

func probationSeconds(c *v1alpha1.ChangePod) int32 {
	if j := c.JudgeOf(v1alpha1.JudgeMetrics); j != nil {
		return j.ProbationSeconds
	}
	return 0
}

// futureLook returns the time of the next look if it is in the future, else zero. A look that is due is no
// deadline: it has wake-ups until it is made.
func futureLook(p *v1alpha1.Probation, now time.Time) time.Time {
	if p == nil || p.NextLookTime == nil || !p.NextLookTime.After(now) {
		return time.Time{}
	}
	return p.NextLookTime.Time
}

// lookDue reports whether function judge is woken for a look, or to send the fail that it has
// recorded again. The look must be in the stored status, which function judge reads.
func lookDue(in Input, d Decision) bool {
	stored, batch := in.ChangeWorkload.Status.Probation, probationBatch(in.ChangePods)
	if d.Phase != v1alpha1.ReleaseSuccess || d.Probation == nil || stored == nil || batch == nil {
		return false
	}
	if batch.LateFailUnsent() {
		return true
	}
	at := d.Probation.NextLookTime
	return at != nil && at.Equal(stored.NextLookTime) && d.Probation.Looks == stored.Looks && !in.Now.Before(at.Time)
}

// wakeJudge wakes function judge for a look during probation. It returns when to try again.
func (r *Reconciler) wakeJudge(ctx context.Context, in Input, d Decision) (time.Duration, error) {
	c := in.ChangeWorkload
	if !lookDue(in, d) {
		r.probationWakeUps.Done(string(c.UID))
		return 0, nil
	}
	due, next := r.probationWakeUps.TakeDue(string(c.UID))
	if !due {
		return next, nil
	}
	batch := probationBatch(in.ChangePods)
	event, err := events.New(events.JudgeWakeUp(batch, c, v1alpha1.JudgeMetrics))
	if err != nil {
		return 0, controller.NewPermanentError(err)
	}
	r.sender.Send(ctx, event)
	return next, nil
}
