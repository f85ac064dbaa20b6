// Package submit is the function that calls the server for a release: it opens,
// starts, finishes and closes the order (order.ready), starts and finishes
// batches (changepod.ready), and writes what came of it as facts:
//
//   - ChangeWorkload status.order,
//   - ChangePod status.submissions, changePodId and the submit times.
//
// Starts are not idempotent at the server. So the intent to call is written
// first, by compare-and-swap, and only its writer calls. An intent that got no
// answer within the deadline of a call is given up: a start is made anew, a
// finish only after the server was asked whether it has passed the batch. While
// the client's circuit breaker is open nothing is written or called: the
// reconciler wakes again.
package submit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// maxSteps bounds the decisions of one wake-up: order, retrieve, call, and one
// that finds that others were faster.
const maxSteps = 5

// errOutdated ends a wake-up whose object is another one by now.
var errOutdated = errors.New("the wake-up is outdated")

// Server is the server as this function uses it; *altershield.Client is one.
type Server interface {
	OpenOrder(ctx context.Context, in altershield.OpenOrder) (altershield.OrderAnswer, error)
	StartOrder(ctx context.Context, in altershield.StartOrder) (altershield.StartAnswer, error)
	StartBatch(ctx context.Context, in altershield.StartBatch) (altershield.StartAnswer, error)
	Finish(ctx context.Context, in altershield.Finish) (altershield.FinishAnswer, error)
	Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error)
	FinishOrder(ctx context.Context, in altershield.FinishOrder) error
}

type function struct {
	client   versioned.Interface
	releases *functions.ReleaseReader
	server   *functions.ClientSource
	recorder *verdict.Recorder
	clock    clock.PassiveClock
	decided  metric.Int64Counter
	// answers are those to finishes that are not written, by batch.
	answers *lru.Cache
}

// New returns the function.
func New(client versioned.Interface, server *functions.ClientSource, recorder *verdict.Recorder, clock clock.PassiveClock, meter metric.Meter) (functions.Function, error) {
	decided, err := meter.Int64Counter("breakwater.submit.decisions",
		metric.WithDescription("What wake-ups of function submit led to, by outcome and stage."))
	if err != nil {
		return nil, fmt.Errorf("create metric: %w", err)
	}
	f := &function{
		client: client, releases: functions.NewReleaseReader(client, clock), server: server, recorder: recorder,
		clock: clock, decided: decided, answers: lru.New(maxAnswers),
	}
	return f.handle, nil
}

// wakeUp is what an event wakes for. Without a pod it is about the order.
type wakeUp struct {
	namespace, workload string
	workloadUID         types.UID
	pod                 string
	podUID              types.UID
	stage               v1alpha1.Stage
}

func (f *function) handle(ctx context.Context, e event.Event) error {
	switch e.Type() {
	case events.TypeOrderReady:
		d, err := events.ParseOrderReady(e)
		if err != nil {
			return functions.Permanent(err)
		}
		return fate(f.wake(ctx, wakeUp{namespace: d.Namespace, workload: d.Name, workloadUID: d.UID}))
	case events.TypeChangePodReady:
		d, err := events.ParseChangePodReady(e)
		if err != nil {
			return functions.Permanent(err)
		}
		return fate(f.wake(ctx, wakeUp{
			namespace: d.Namespace, workload: d.ChangeWorkload, pod: d.Name, podUID: d.UID, stage: d.Stage,
		}))
	default:
		return functions.Permanentf("event type %s is not for function submit", e.Type())
	}
}

// fate: what is gone needs nothing; what the server refused is stored, and the
// same words would be refused again. A proxy that says 4xx means a wrong
// base-url, which no repetition within seconds cures. The reconciler wakes
// again in either case, until the deadline.
func fate(err error) error {
	var transport *altershield.TransportError
	switch {
	case errors.Is(err, errOutdated), apierrors.IsNotFound(err), refused(err), altershield.IsBreakerOpen(err):
		return nil
	case errors.As(err, &transport) && transport.Kind == altershield.KindStatus && transport.Status < http.StatusInternalServerError:
		return nil
	default:
		return err
	}
}

// wake has the batch, or the order, decided about. Whether a batch still waits
// is read live; of its release one knows what was read a moment ago.
func (f *function) wake(ctx context.Context, w wakeUp) error {
	server, config, configErr := f.server.Client(ctx)
	var mistake *functions.ConfigError
	if errors.As(configErr, &mistake) {
		configErr = nil
	}
	if configErr != nil || (server == nil && mistake == nil) {
		return configErr
	}
	if mistake == nil && server.BreakerOpen() {
		f.note(ctx, w, w.stage, Decision{Nothing, "the server was away a moment ago; the reconciler wakes again"})
		return nil
	}
	switch {
	case mistake != nil:
		return f.misconfigured(ctx, w, mistake)
	case w.pod == "":
		return f.wakeOrder(ctx, server, w, config.TotalDeadline)
	default:
		return f.wakeBatch(ctx, server, w, config.TotalDeadline)
	}
}

// wakeBatch decides and acts for a batch until there is nothing more to do.
func (f *function) wakeBatch(ctx context.Context, server Server, w wakeUp, callDeadline time.Duration) error {
	workload, recent, err := f.releases.Cached(ctx, w.namespace, w.workload)
	if err != nil {
		return err
	}
	in := Input{Workload: workload, Stage: w.stage, CallDeadline: callDeadline}
	for range maxSteps {
		decision, err := f.decide(ctx, w, &in)
		if err != nil {
			return err
		}
		if recent && !v1alpha1.OwnedBy(in.Pod, in.Workload.UID) {
			// Nothing was done: it may be a batch of a release that began since.
			recent = false
			if in.Workload, err = f.releases.Live(ctx, w.namespace, w.workload); err != nil {
				return err
			}
			continue
		}
		f.note(ctx, w, w.stage, decision)
		switch decision.Outcome {
		case OpenOrder:
			in.Workload, err = f.openOrder(ctx, server, in.Workload)
		case AskRetrieve:
			var passed bool
			if passed, err = f.retrieve(ctx, server, in); passed {
				return err
			}
			in.Asked = true
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
	return errors.New("the batch changed at every step")
}

// note logs and counts a decision.
func (f *function) note(ctx context.Context, w wakeUp, stage v1alpha1.Stage, d Decision) {
	logging.FromContext(ctx).Infow("submit", "namespace", w.namespace, "changeworkload", w.workload,
		"changepod", w.pod, "stage", stage, "outcome", d.Outcome, "reason", d.Reason)
	f.decided.Add(ctx, 1, metric.WithAttributes(
		attribute.String("outcome", string(d.Outcome)), attribute.String("stage", string(stage))))
}

// decide reads the batch, decides, and writes the intent with which a call
// begins.
func (f *function) decide(ctx context.Context, w wakeUp, in *Input) (Decision, error) {
	var decision Decision
	pods := f.client.AppV1alpha1().ChangePods(w.namespace)
	stored, err := functions.PatchStatus(ctx, pods, w.pod, statuspatch.ChangePodSubmit, func(pod *v1alpha1.ChangePod) error {
		if pod.UID != w.podUID {
			return errOutdated
		}
		in.Pod, in.Now = pod.DeepCopy(), f.clock.Now()
		answered, ok := f.remembered(pod)
		in.Remembered = ok && w.stage == v1alpha1.StagePost
		decision = Decide(*in)
		switch decision.Outcome {
		case StartBatch, FinishBatch:
			claimBatch(&pod.Status, w.stage, in.Now)
		case StoreAnswer:
			finished(&pod.Status, pod.Status.SubmissionOf(w.stage).Attempts, answered)
		}
		return nil
	})
	in.Pod = stored
	return decision, err
}
