package verdict

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/batchstatus"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// Follower makes the call that follows a PRE verdict: the finish of a batch whose check
// passed. submit.Finisher implements it.
type Follower interface {
	// Prepare returns the call that may follow a pass, or nil.
	Prepare(ctx context.Context, received events.ChangePodVerdict) FollowUp
	// PostVerdictStored is called when a POST verdict of a batch is stored, whatever it is.
	PostVerdictStored(batch types.UID)
}

// FollowUp is a call that may follow a verdict.
type FollowUp interface {
	// SetIntent sets the intent of the call on a batch that has the verdict and is not stored yet,
	// if the call is due. After a conflict it is called again.
	SetIntent(batch *v1alpha1.ChangePod)
	// Call makes the call for the batch as it is stored, if SetIntent set an intent.
	Call(ctx context.Context, stored *v1alpha1.ChangePod)
	// CancelReservation must be called at the end. It gives the slot of the rate limit to another
	// call if no call used it.
	CancelReservation()
}

// SetFollower makes the recorder store a verdict of the server on a batch together with its
// consequence: the intent of the next call, or the end of the batch. Only function verdict may
// write both (config/core/444-functions-write-facts.yaml).
func (r *Recorder) SetFollower(f Follower) {
	r.follower = f
	r.fields = slices.Concat(statuspatch.ChangePodVerdict, statuspatch.ChangePodFinish, statuspatch.ChangePodEnd)
	r.setEnd = batchstatus.SetEnd
}

// prepare returns the call that may follow the verdict, or nil.
func (r *Recorder) prepare(ctx context.Context, received events.ChangePodVerdict) FollowUp {
	if r.follower == nil || !isPrePass(received) {
		return nil
	}
	return r.follower.Prepare(ctx, received)
}

func isPrePass(received events.ChangePodVerdict) bool {
	return received.Stage == v1alpha1.StagePre && v1alpha1.ParseVerdict(received.Verdict) == v1alpha1.OutcomePass
}
