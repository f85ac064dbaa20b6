// Package submit is the function that calls the server for a release: it opens,
// starts, finishes and closes the order (order.ready), and starts and finishes
// batches (changepod.ready). It writes the results as facts: status.order of the
// ChangeWorkload; status.submissions, changePodId and the submit times of the
// ChangePod; and a verdict that it retrieved. In function verdict, Finisher makes the
// finish that follows a passed PRE check.
//
// Starts are not idempotent. Therefore the intent is written before the call, by
// compare-and-swap, and only its writer calls. An intent without an answer within
// the deadline of a call has expired: a start is repeated, a finish only after
// retrieve. The server may lose the event of a call, or a callback: see nextCall.
// While the client's circuit breaker is open, nothing is written or called; the
// reconciler sends the wake-up again. A call waits for the rate limit before its
// intent is written: the timeouts of a stage count from the intent.
package submit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// maxSteps limits the decisions of one wake-up: order, retrieve, call, and reactions
// to concurrent writes.
const maxSteps = 5

// errOutdated ends a wake-up whose object was replaced by another one.
var errOutdated = errors.New("the wake-up is outdated")

// Server has the calls that this function makes; *altershield.Client implements it.
type Server interface {
	Reserve(ctx context.Context) (*altershield.Reservation, error)
	BreakerOpen() bool
	OpenOrder(ctx context.Context, in altershield.OpenOrder) (altershield.OrderAnswer, error)
	StartOrder(ctx context.Context, in altershield.StartOrder) (altershield.StartAnswer, error)
	StartBatch(ctx context.Context, in altershield.StartBatch) (altershield.StartAnswer, error)
	Finish(ctx context.Context, in altershield.Finish) (altershield.FinishAnswer, error)
	Resubmit(ctx context.Context, in altershield.Resubmit) error
	Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error)
	CloseOrder(ctx context.Context, in altershield.CloseOrder) error
}

type function struct {
	client   versioned.Interface
	releases *functions.ReleaseReader
	server   *functions.ClientSource
	recorder *verdict.Recorder
	clock    clock.PassiveClock
	decided  metrics.Counter
	// answers caches answers to finishes that are not stored, by batch.
	answers *lru.Cache
	// cacheAnswer caches the answer to a finish instead of storing it.
	cacheAnswer func(*v1alpha1.ChangePod, time.Time)
}

// New returns the function. It handles only wake-ups that verifier accepts as sent by the
// controller: others would use up its requests to the API server.
func New(client versioned.Interface, server *functions.ClientSource, recorder *verdict.Recorder, verifier functions.Verifier, clock clock.PassiveClock, meter metric.Meter) functions.Function {
	f := &function{
		client: client, releases: functions.NewReleaseReader(client, clock), server: server, recorder: recorder,
		clock: clock, decided: metrics.NewCounter(meter, "breakwater_call_decisions_total"), answers: lru.New(maxAnswers),
	}
	f.cacheAnswer = func(p *v1alpha1.ChangePod, at time.Time) { f.answers.Add(p.UID, at) }
	return functions.Authenticated(verifier, f.handle)
}

// wakeUp is a wake-up for a batch, or for the order if batch is empty.
type wakeUp struct {
	namespace, release string
	releaseUID         types.UID
	batch              string
	batchUID           types.UID
	stage              v1alpha1.Stage
	// batchCopy is the batch as the controller knew it, or nil.
	batchCopy *v1alpha1.ChangePod
}

func (f *function) handle(ctx context.Context, e event.Event) error {
	switch e.Type() {
	case events.TypeOrderReady:
		d, err := events.ParseOrderReady(e)
		if err != nil {
			return functions.Permanent(err)
		}
		return onlyRetryable(f.handleWakeUp(ctx, wakeUp{namespace: d.Namespace, release: d.Name, releaseUID: d.UID}))
	case events.TypeChangePodReady:
		d, err := events.ParseChangePodReady(e)
		if err != nil {
			return functions.Permanent(err)
		}
		if d.Judge != "" {
			return nil // the wake-up is for another judge; at the server the stage may not be due
		}
		return onlyRetryable(f.handleWakeUp(ctx, wakeUp{
			namespace: d.Namespace, release: d.ChangeWorkload, batch: d.Name, batchUID: d.UID, stage: d.Stage, batchCopy: d.ChangePod,
		}))
	default:
		return functions.Permanentf("function submit does not handle event type %s", e.Type())
	}
}

// onlyRetryable returns err, or nil if the Broker must not retry: the object was deleted
// or replaced; the server rejected the call, which is stored; the server was not called
// (circuit breaker, rate limit); or a proxy answered with a status below 500, usually
// because base-url is wrong. The reconciler repeats the wake-up until the deadline.
func onlyRetryable(err error) error {
	var callErr *altershield.CallError
	switch {
	case errors.Is(err, errOutdated), apierrors.IsNotFound(err), isRejected(err), altershield.IsBreakerOpen(err), altershield.IsThrottled(err):
		return nil
	case errors.As(err, &callErr) && callErr.Kind == altershield.KindStatus && callErr.Status < http.StatusInternalServerError:
		return nil
	default:
		return err
	}
}

// handleWakeUp handles a wake-up for a batch or an order. A batch is first its copy in the event, if
// there is one (decideAndStore); otherwise batches, and the releases of wake-ups for an order, are read from the
// API server. The release of a batch may come from the cache.
func (f *function) handleWakeUp(ctx context.Context, w wakeUp) error {
	server, config, err := f.server.Client(ctx)
	if configErr, ok := errors.AsType[*functions.ConfigError](err); ok {
		return f.storeConfigError(ctx, w, configErr)
	}
	if err != nil || server == nil {
		return err
	}
	if server.BreakerOpen() {
		f.recordDecision(ctx, w, w.stage, breakerOpen)
		return nil
	}
	if w.batch == "" {
		return f.handleOrder(ctx, server, w, config.TotalDeadline)
	}
	return f.handleBatch(ctx, server, w, config.TotalDeadline)
}

// handleBatch decides and acts for a batch until nothing is left to do.
func (f *function) handleBatch(ctx context.Context, server Server, w wakeUp, callTimeout time.Duration) error {
	release, cached, err := f.releases.Recent(ctx, w.namespace, w.release)
	if err != nil {
		return err
	}
	in := Input{Release: release, Stage: w.stage, callContext: callContext{CallTimeout: callTimeout}}
	for range maxSteps {
		decision, err := f.decideAndStore(ctx, server, w, &in)
		w.batchCopy = nil // later decisions are about the batch as it is then
		if err != nil {
			return err
		}
		if cached && !v1alpha1.OwnedBy(in.Batch, in.Release.UID) {
			// The batch may belong to a release that is newer than the cached one.
			cached = false
			if in.Release, err = f.releases.Live(ctx, w.namespace, w.release); err != nil {
				return err
			}
			continue
		}
		f.recordDecision(ctx, w, w.stage, decision)
		switch decision.Action {
		case OpenOrder:
			in.Release, err = f.openOrder(ctx, server, in.Release)
		case AskRetrieve:
			var passed bool
			if passed, err = f.retrieve(ctx, server, in); passed {
				return err
			}
			in.Asked = true
		case Resubmit:
			if in.NotBegunNode, err = f.resubmit(ctx, server, in); in.NotBegunNode == "" {
				return err
			}
		case StartBatch:
			return f.start(ctx, server, in)
		case FinishBatch:
			return f.finish(ctx, server, in)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("gave up after %d decisions in one wake-up, each of which needed another one about the batch", maxSteps)
}

// recordDecision logs and counts a decision.
func (f *function) recordDecision(ctx context.Context, w wakeUp, stage v1alpha1.Stage, d Decision) {
	logging.FromContext(ctx).Infow("Wake-up handled", "namespace", w.namespace, "changeworkload", w.release,
		"changepod", w.batch, "stage", stage, "action", d.Action, "reason", d.Reason)
	f.decided.Add(ctx, 1, string(d.Action), string(stage))
}

// decideAndStore decides on the copy of the batch in the wake-up, or on the batch that it reads. For a
// call it waits for the rate limit, and then writes the intent. Only a write detects that the
// copy is outdated, so decisions without one are made on the batch.
func (f *function) decideAndStore(ctx context.Context, server Server, w wakeUp, in *Input) (Decision, error) {
	batches := f.client.AppV1alpha1().ChangePods(w.namespace)
	batch := w.batchCopy
	if batch == nil {
		var err error
		if batch, err = batches.Get(ctx, w.batch, metav1.GetOptions{}); err != nil {
			return Decision{}, fmt.Errorf("read %s: %w", w.batch, err)
		}
	}
	decision, answeredAt, err := f.decideOn(batch, w, in)
	if err != nil {
		return decision, err
	}
	if !decision.writesBatch() {
		if w.batchCopy == nil {
			return decision, nil
		}
		w.batchCopy = nil
		return f.decideAndStore(ctx, server, w, in)
	}
	if in.Reservation, decision = reserve(ctx, server, decision, in.CallTimeout); !decision.writesBatch() {
		return decision, nil
	}
	in.Batch, err = functions.PatchStatusFrom(ctx, batches, batch, statuspatch.ChangePodSubmit, func(batch *v1alpha1.ChangePod) error {
		var err error
		if decision, answeredAt, err = f.decideOn(batch, w, in); err != nil {
			return err
		}
		switch decision.Action {
		case StartBatch, FinishBatch:
			setBatchIntent(&batch.Status, w.stage, in.Now)
		case StoreAnswer:
			setFinishAccepted(&batch.Status, batch.Status.SubmissionOf(w.stage).Attempts, answeredAt)
		}
		return nil
	})
	if err != nil || (decision.Action != StartBatch && decision.Action != FinishBatch) {
		in.Reservation.Cancel()
	}
	return decision, err
}

// decideOn decides on a batch as it is stored.
func (f *function) decideOn(batch *v1alpha1.ChangePod, w wakeUp, in *Input) (Decision, time.Time, error) {
	if batch.UID != w.batchUID {
		return Decision{}, time.Time{}, errOutdated
	}
	in.Batch, in.Now = batch.DeepCopy(), f.clock.Now()
	answeredAt, ok := f.cachedAnswer(batch)
	in.AnswerCached = ok && w.stage == v1alpha1.StagePost
	return Decide(*in), answeredAt, nil
}
