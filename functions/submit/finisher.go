package submit

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// slotTimeout is how long a verdict waits for a slot of the rate limit before it is stored.
	slotTimeout = 250 * time.Millisecond
	// maxWaitForCall is how long the sender of a verdict waits for the call that follows. The
	// verdict is stored before the call, and the call continues after the timeout.
	maxWaitForCall = 2 * time.Second
)

// Finisher calls the finish of a batch in function verdict when its PRE check passed. The intent is
// stored with the verdict, and then Finisher makes the call. Function submit makes the call
// where Finisher cannot: if the rate limit has no slot, or if the circuit breaker is open.
type Finisher struct {
	function
	// wait waits for a call, at most maxWaitForCall.
	wait func(call func())
	// calls are the calls in flight.
	calls    sync.WaitGroup
	unstored unstoredAnswers
}

var _ verdict.Follower = (*Finisher)(nil)

// NewFinisher returns a Finisher. Its Run and AfterDrain store answers that no verdict followed.
func NewFinisher(client versioned.Interface, server *functions.ClientSource, clock clock.PassiveClock, meter metric.Meter) *Finisher {
	f := &Finisher{function: function{
		client: client, releases: functions.NewReleaseReader(client, clock), server: server,
		clock: clock, decided: metrics.NewCounter(meter, "breakwater_call_decisions_total"),
	}, wait: waitForCall}
	f.cacheAnswer = f.unstored.add
	return f
}

// PostVerdictStored implements verdict.Follower. It drops the answer for the batch: the verdict proves
// that the server accepted the call.
func (f *Finisher) PostVerdictStored(batch types.UID) { f.unstored.drop(batch) }

// waitForCall makes a call and returns when it ended, or after maxWaitForCall.
func waitForCall(call func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	timer := time.NewTimer(maxWaitForCall)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// WaitForCalls makes each verdict wait until its call has ended, however long it takes.
// It is for tests.
func (f *Finisher) WaitForCalls() *Finisher {
	f.wait = func(call func()) { call() }
	return f
}

// Prepare implements verdict.Follower. It returns nil if no call can follow now.
func (f *Finisher) Prepare(ctx context.Context, received events.ChangePodVerdict) verdict.FollowUp {
	server, config, err := f.server.Client(ctx)
	if err != nil || server == nil || server.BreakerOpen() {
		return nil
	}
	release, _, err := f.releases.Recent(ctx, received.Namespace, received.ChangeWorkload)
	if err != nil {
		return nil
	}
	slot, d := reserve(ctx, server, Decision{Action: FinishBatch}, slotTimeout)
	if d.Action != FinishBatch {
		return nil
	}
	return &followUp{
		finisher: f, server: server,
		in: Input{Release: release, Stage: v1alpha1.StagePost, callContext: callContext{CallTimeout: config.TotalDeadline, Reservation: slot}},
	}
}

// followUp is the call that may follow a verdict.
type followUp struct {
	finisher *Finisher
	server   *altershield.Client
	in       Input
	intent   bool
}

// SetIntent implements verdict.FollowUp.
func (u *followUp) SetIntent(batch *v1alpha1.ChangePod) {
	u.in.Batch, u.in.Now = batch, u.finisher.clock.Now()
	// An unconfirmed pass does not end stage PRE. A finish is not repeated here, because the
	// first one may have arrived.
	passed := batch.Status.VerdictOf(v1alpha1.StagePre).Outcome() == v1alpha1.OutcomePass
	u.intent = passed && batch.Status.SubmissionOf(v1alpha1.StagePost) == nil && Decide(u.in).Action == FinishBatch
	if u.intent {
		setBatchIntent(&batch.Status, v1alpha1.StagePost, u.in.Now)
	}
}

// Call implements verdict.FollowUp.
func (u *followUp) Call(ctx context.Context, stored *v1alpha1.ChangePod) {
	if !u.intent {
		return
	}
	u.in.Batch = stored
	u.finisher.recordDecision(ctx, wakeUp{namespace: stored.Namespace, release: u.in.Release.Name, batch: stored.Name},
		v1alpha1.StagePost, Decision{FinishBatch, "the PRE check passed"})
	ctx = context.WithoutCancel(ctx)
	u.finisher.calls.Add(1)
	u.finisher.wait(func() {
		defer u.finisher.calls.Done()
		if err := u.finisher.finish(ctx, u.server, u.in); err != nil {
			// The error is stored, and the reconciler wakes function submit.
			logging.FromContext(ctx).Warnw("Could not call the finish of a batch", "changepod", stored.Name, "error", err)
		}
	})
}

// CancelReservation implements verdict.FollowUp.
func (u *followUp) CancelReservation() { u.in.Reservation.Cancel() }
