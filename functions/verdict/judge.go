package verdict

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// DecideJudge returns the action for a verdict of a judge other than the server, and the
// verdicts to store. A verdict replaces only one of lower precedence, as for the server:
// a late fail replaces a pass, and only a person can overrule a fail.
func DecideJudge(batch *v1alpha1.ChangePod, received events.JudgeVerdict) (Action, []v1alpha1.JudgeVerdict) {
	stored := batch.Status.Judges
	next := v1alpha1.JudgeVerdict{
		Judge: received.Judge, Stage: received.Stage, Verdict: received.Verdict,
		Reason: received.Reason, Message: received.Message, Time: received.Time,
	}
	switch {
	case received.UID != batch.UID:
		return OtherObject, stored
	case !slices.ContainsFunc(batch.OtherJudges(false), func(j v1alpha1.Judge) bool { return j.Name == received.Judge }):
		return NotAsked, stored
	case next.Precedence() <= batch.Status.JudgeVerdictOf(received.Judge).Precedence():
		return Unchanged, stored
	}
	out := slices.DeleteFunc(slices.Clone(stored), func(v v1alpha1.JudgeVerdict) bool { return v.Judge == received.Judge })
	return Store, append(out, next)
}

// RecordJudge stores a verdict of a judge other than the server, by compare-and-swap. A deleted
// ChangePod is not an error.
func (r *Recorder) RecordJudge(ctx context.Context, received events.JudgeVerdict) error {
	var action Action
	batches := r.client.AppV1alpha1().ChangePods(received.Namespace)
	stored, err := functions.PatchStatus(ctx, batches, received.Name, statuspatch.ChangePodJudge, func(batch *v1alpha1.ChangePod) error {
		action, batch.Status.Judges = DecideJudge(batch, received)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if action == Store {
		releasetrace.BatchVerdict(ctx, stored, releasetrace.Verdict{
			Judge: received.Judge, Stage: received.Stage, Verdict: received.Verdict, Received: received.Time.Time, Stored: r.clock.Now(),
		})
	}
	r.received.Add(ctx, 1, "JUDGE_"+string(received.Stage), string(v1alpha1.ParseVerdict(received.Verdict)), string(action))
	logging.FromContext(ctx).Infow("Verdict of a judge handled", "changepod", received.Namespace+"/"+received.Name, "judge", received.Judge,
		"verdict", received.Verdict, "reason", received.Reason, "action", action)
	return nil
}
