package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/judge"
)

// clockSkew is how much earlier than the controller's the clock of the function may be.
const clockSkew = 5 * time.Second

// handleProbation makes the look of a probation that is due. Only a fail is sent: the release
// has succeeded.
func (f *function) handleProbation(ctx context.Context, batch *v1alpha1.ChangePod, w events.ChangePodReady, asked v1alpha1.Judge) error {
	parent, err := f.Change.AppV1alpha1().ChangeWorkloads(batch.Namespace).Get(ctx, w.ChangeWorkload, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ChangeWorkload: %w", err)
	}
	now := f.Clock.Now()
	switch nextProbationAction(parent, batch, now) {
	case actionLook:
		record, err := f.lookDuringProbation(ctx, parent, batch, asked, now)
		if err != nil {
			return err
		}
		f.looks.Add(ctx, 1, string(record.Verdict), record.Reason)
		if isRepeated(record, parent.Status.Probation.EndTime.Time, now) {
			logging.FromContext(ctx).Warnw("A look at a release on probation is repeated, because Prometheus could not be read",
				"changeworkload", w.Namespace+"/"+parent.Name, "due", parent.Status.Probation.NextLookTime, "error", record.Message)
			return nil
		}
		batch, err = f.storeProbation(ctx, batch, record)
		if errors.Is(err, errOutdated) || apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		logging.FromContext(ctx).Infow("Looked at the metrics of a release on probation", "changeworkload", w.Namespace+"/"+parent.Name,
			"looks", record.Looks, "verdict", record.Verdict, "reason", record.Reason, "final", record.Final)
		if batch.Status.Probation.Verdict != judgev1alpha1.VerdictFail {
			return nil
		}
	case actionSend:
	default:
		return nil
	}
	return f.send(ctx, batch, w, batch.Status.Probation)
}

// nextProbationAction returns the action after a wake-up during probation. The status of the release
// has the number of looks and the time of the next one. A duplicate wake-up finds a record with
// more looks, and one that comes after the end finds no next look.
func nextProbationAction(parent *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod, now time.Time) action {
	p, record := parent.Status.Probation, batch.Status.Probation
	if parent.Status.Phase != v1alpha1.ReleaseSuccess || p == nil || !v1alpha1.OwnedBy(batch, parent.UID) {
		return actionNothing
	}
	looks := int32(0)
	if record != nil {
		looks = record.Looks
	}
	switch {
	case batch.LateFailUnsent():
		return actionSend
	case record != nil && record.Final:
		return actionNothing
	}
	if p.NextLookTime == nil || p.Looks != looks || now.Add(clockSkew).Before(p.NextLookTime.Time) {
		return actionNothing
	}
	return actionLook
}

// isRepeated reports whether a look is made again at the next wake-up, and not counted, because no metric
// could be read. It counts if some could: a wrong query of one must not end the comparison of the others. The look at the
// end of the probation counts in any case.
func isRepeated(record judgev1alpha1.Record, end, now time.Time) bool {
	read := slices.ContainsFunc(record.Metrics, func(e judgev1alpha1.Evidence) bool { return e.Reason != judgev1alpha1.ReasonMetricsUnavailable })
	return !read && record.Reason == judgev1alpha1.ReasonMetricsUnavailable && now.Before(end)
}

// lookDuringProbation looks at the metrics of a release that has succeeded.
func (f *function) lookDuringProbation(ctx context.Context, parent *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod, asked v1alpha1.Judge, now time.Time) (judgev1alpha1.Record, error) {
	check, err := f.checkOf(ctx, asked)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	release, err := f.succeededReleaseOf(ctx, parent, batch)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	if now = now.Truncate(lookStep); now.Before(parent.Status.Probation.NextLookTime.Time) {
		now = parent.Status.Probation.NextLookTime.Time
	}
	if check == nil {
		r := checkDeleted(batch.Status.Probation, asked, release.start, now)
		r.Looks++
		return r, nil
	}
	source, err := f.source(ctx)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	target := release.target(batch, source.Labels)
	target.StartTime = metav1.NewTime(release.start)
	end := parent.Status.Probation.EndTime.Time
	ctx, cancel := readContext(ctx, batch.Namespace)
	defer cancel()
	return judge.LookDuringProbation(ctx, source.Reader, judge.ProbationLook{
		Check: check.Spec, Target: target, Success: end.Add(-time.Duration(asked.ProbationSeconds) * time.Second), End: end, Previous: batch.Status.Probation,
	}, now), nil
}

// storeProbation stores the record of a probation, unless the stored one has as many looks.
func (f *function) storeProbation(ctx context.Context, before *v1alpha1.ChangePod, record judgev1alpha1.Record) (*v1alpha1.ChangePod, error) {
	bounded := storable(record)
	return f.patch(ctx, before, func(s *v1alpha1.ChangePodStatus) {
		if s.Probation == nil || s.Probation.Looks < record.Looks {
			s.Probation = &bounded
		}
	})
}
