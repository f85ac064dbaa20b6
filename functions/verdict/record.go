package verdict

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// Retriever asks the server for a verdict; *altershield.Client implements it.
type Retriever interface {
	Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error)
}

// Recorder writes status.verdicts and status.podResults of ChangePods, and
// status.orderVerdicts of ChangeWorkloads. Apart from people it is the only writer of
// these fields: function submit, which retrieves verdicts after a lost answer,
// records them with a Recorder too, so the same rules apply.
type Recorder struct {
	client   versioned.Interface
	clock    clock.PassiveClock
	received metrics.Counter
	// follower makes the call that follows a PRE verdict, or is nil, and fields are those that the write
	// of a verdict may change: see SetFollower.
	follower Follower
	fields   []string
	// setEnd derives the end of a batch: see SetFollower.
	setEnd func(*v1alpha1.ChangePod, time.Time)
	// written are the batches that this process wrote last.
	written *written
}

// NewRecorder returns a recorder.
func NewRecorder(client versioned.Interface, clock clock.PassiveClock, meter metric.Meter) *Recorder {
	return &Recorder{
		client: client, clock: clock, received: metrics.NewCounter(meter, "breakwater_verdicts_total"),
		fields: statuspatch.ChangePodVerdict,
		setEnd: func(*v1alpha1.ChangePod, time.Time) {}, written: newWritten(),
	}
}

// Record stores a verdict of a ChangePod, if its precedence is higher than that of the stored
// one. A pass without rules has to be confirmed by server, which may be nil. A deleted
// ChangePod is not an error.
func (r *Recorder) Record(ctx context.Context, received events.ChangePodVerdict, server Retriever) error {
	in := Input{Received: received}
	next := r.prepare(ctx, received)
	if next != nil {
		defer next.CancelReservation()
	}
	decision, stored, err := r.apply(ctx, in, next)
	if err == nil && decision.Action == AskRetrieve {
		in.Retrieved = retrieve(ctx, altershield.Retrieve{
			OrderID: received.BizExecOrderID, NodeID: received.NodeID, Stage: received.Stage,
		}, server)
		decision, stored, err = r.apply(ctx, in, next)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.received.Add(ctx, 1, string(received.Stage), string(v1alpha1.ParseVerdict(received.Verdict)), string(decision.Action))
	logging.FromContext(ctx).Infow("Verdict handled", "changepod", received.Namespace+"/"+received.Name, "node", received.NodeID,
		"stage", received.Stage, "verdict", received.Verdict, "action", decision.Action)
	if decision.Action == Store {
		if r.follower != nil && received.Stage == v1alpha1.StagePost {
			r.follower.PostVerdictStored(received.UID)
		}
		if next != nil {
			next.Call(ctx, stored)
		}
	}
	return nil
}

// apply decides on the current ChangePod and writes by compare-and-swap: the verdict with the
// end of the batch, or with the intent of the call that follows. It decides first on the batch
// that this process wrote last, or on the copy in the event. Only a write detects that this batch
// is outdated.
func (r *Recorder) apply(ctx context.Context, in Input, next FollowUp) (decision Decision, stored *v1alpha1.ChangePod, err error) {
	var before v1alpha1.BatchPhase
	decide := func(batch *v1alpha1.ChangePod) error {
		in.Batch, in.Now, before = batch, r.clock.Now(), batch.Status.Phase
		decision = Decide(in)
		batch.Status.Verdicts, batch.Status.PodResults = decision.Verdicts, decision.PodResults
		if decision.Action == Store {
			r.setEnd(batch, in.Now)
			if next != nil {
				next.SetIntent(batch)
			}
		}
		return nil
	}
	stored, err = r.write(ctx, in.Received, &decision, decide)
	if err == nil && decision.Action == Store {
		traceVerdict(ctx, in, before, stored)
	}
	return decision, stored, err
}

// write writes what decide changes. decide sets the decision.
func (r *Recorder) write(ctx context.Context, received events.ChangePodVerdict, decision *Decision, decide func(*v1alpha1.ChangePod) error) (*v1alpha1.ChangePod, error) {
	stored, err := r.writeFrom(ctx, cmp.Or(r.written.take(received.UID), received.ChangePod), received, decision, decide)
	if err == nil && decision.Action == Store && isPrePass(received) { // a verdict of stage POST follows
		r.written.add(stored)
	}
	return stored, err
}

// writeFrom is write. It decides first on the given batch, which may be nil.
func (r *Recorder) writeFrom(ctx context.Context, batch *v1alpha1.ChangePod, received events.ChangePodVerdict, decision *Decision, decide func(*v1alpha1.ChangePod) error) (*v1alpha1.ChangePod, error) {
	batches := r.client.AppV1alpha1().ChangePods(received.Namespace)
	if batch != nil {
		stored, err := functions.PatchStatusFrom(ctx, batches, batch, r.fields, decide)
		if err != nil || decision.Action == Store {
			return stored, err
		}
	}
	return functions.PatchStatus(ctx, batches, received.Name, r.fields, decide)
}

// traceVerdict makes the span of a stored verdict, and that of the batch if the write ended it.
func traceVerdict(ctx context.Context, in Input, before v1alpha1.BatchPhase, stored *v1alpha1.ChangePod) {
	v := in.Received
	releasetrace.BatchVerdict(ctx, stored, releasetrace.Verdict{
		Judge: v1alpha1.JudgeServer, Stage: v.Stage, Verdict: v.Verdict, Received: v.Time.Time, Stored: in.Now,
	})
	releasetrace.BatchIfEnded(ctx, before, stored, in.Now)
}

// retrieve returns the answer of the server about a pass without rules. Without an
// answer the pass is stored unconfirmed at once: waiting for the server would withhold
// the fact from the release. Function submit asks again until the timeout of the stage.
func retrieve(ctx context.Context, request altershield.Retrieve, server Retriever) Retrieved {
	if server == nil {
		return RetrievedNothing
	}
	answer, err := server.Retrieve(ctx, request)
	switch {
	case err != nil:
		logging.FromContext(ctx).Warnw("Could not retrieve the verdict; the pass without rules is not confirmed", "node", request.NodeID, "error", err)
		return RetrievedNothing
	case answer.Passed():
		return RetrievedPass
	default:
		return RetrievedOther
	}
}
