// Package judge is the function that judges batches by their metrics. On each wake-up
// (changepod.ready with judge metrics) it makes one look: it reads the metrics of the new and
// the old pods of the release from Prometheus, and stores the result in status.metricRecord
// of the ChangePod, by compare-and-swap. When the analysis has ended, it sends the verdict of the
// record to the Broker, signed with its own key; function verdict stores it.
//
// The record is stored before the verdict is sent, so a lost event needs one more wake-up
// and no further look. If Prometheus cannot be read, the verdict is never a pass: the record
// says why there is no verdict, and the ChangePod reconciler wakes this function again.
//
// If the MetricCheck has a probation, the ChangeWorkload reconciler wakes this function for the
// first batch after the success of the release. The results are in status.probation of this
// batch, and only a fail is sent.
package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
)

// Broker delivers an event; *delivery.Sender implements it.
type Broker interface {
	// Deliver returns nil when the Broker has accepted the event.
	Deliver(ctx context.Context, e event.Event) error
}

// Signer signs a verdict; *eventsigning.Store implements it.
type Signer interface {
	Sign(ctx context.Context, e *event.Event) error
}

// Options has what the function uses.
type Options struct {
	Change versioned.Interface
	Kube   kubernetes.Interface
	// CurrentSource returns Prometheus as it is configured now.
	CurrentSource func(ctx context.Context) (Source, error)
	Broker        Broker
	Signer        Signer
	// Verifier verifies wake-ups.
	Verifier functions.Verifier
	Clock    clock.PassiveClock
	Meter    metric.Meter
}

type function struct {
	Options
	releases *releaseCache
	// lists limits how many releases are found at a time, by namespace.
	lists pagedlist.Places
	looks metrics.Counter
}

// deliverTimeout limits one delivery to the Broker; the next wake-up sends the verdict
// again.
const deliverTimeout = 10 * time.Second

// errOutdated ends a wake-up whose batch was replaced by another one, or has no release any more.
var errOutdated = errors.New("the wake-up is outdated")

// New returns the function. It handles only wake-ups that the controller signed: a look costs
// queries, and a verdict has version and attempt of its wake-up.
func New(o Options) functions.Function {
	f := &function{Options: o, releases: newReleaseCache(o.Clock), lists: pagedlist.NewPlaces(), looks: metrics.NewCounter(o.Meter, "breakwater_judge_looks_total")}
	return functions.Authenticated(o.Verifier, f.handle)
}

func (f *function) handle(ctx context.Context, e event.Event) error {
	w, err := events.ParseChangePodReady(e)
	if err != nil {
		return functions.Permanent(err)
	}
	if w.Judge != v1alpha1.JudgeMetrics {
		return nil // the wake-up is for another judge
	}
	batch, err := f.Change.AppV1alpha1().ChangePods(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ChangePod: %w", err)
	}
	next, asked := nextAction(batch, w)
	switch next {
	case actionLook:
		record, err := f.look(ctx, batch, *asked)
		if errors.Is(err, errOutdated) {
			return nil
		} else if err != nil {
			return err
		}
		f.looks.Add(ctx, 1, string(record.Verdict), record.Reason)
		batch, err = f.store(ctx, batch, record)
		if errors.Is(err, errOutdated) || apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		logging.FromContext(ctx).Infow("Looked at the metrics of a batch", "changepod", w.Namespace+"/"+w.Name,
			"looks", record.Looks, "verdict", record.Verdict, "reason", record.Reason, "final", record.Final)
		if !batch.Status.MetricRecord.Final {
			return nil
		}
	case actionSend:
	case actionProbation:
		return f.handleProbation(ctx, batch, w, *asked)
	default:
		return nil
	}
	return f.send(ctx, batch, w, batch.Status.MetricRecord)
}

// action is what is done after a wake-up.
type action string

const (
	// actionNothing: the wake-up is outdated, or the verdict is stored.
	actionNothing action = "nothing"
	// actionLook looks at the metrics.
	actionLook action = "look"
	// actionSend sends the verdict of the record again, because it is not stored yet.
	actionSend action = "send"
	// actionProbation: the verdict is stored, and the release may be on probation.
	actionProbation action = "probation"
)

// nextAction returns the action after a wake-up. It depends only on facts, because the wake-up
// may be duplicate, late or outdated.
func nextAction(batch *v1alpha1.ChangePod, w events.ChangePodReady) (action, *v1alpha1.Judge) {
	asked := batch.JudgeOf(v1alpha1.JudgeMetrics)
	record := batch.Status.MetricRecord
	switch {
	case batch.UID != w.UID, batch.DeletionTimestamp != nil, asked == nil:
		return actionNothing, nil
	case batch.Status.JudgeVerdictOf(v1alpha1.JudgeMetrics) != nil && asked.ProbationSeconds > 0:
		return actionProbation, asked
	case batch.Status.JudgeVerdictOf(v1alpha1.JudgeMetrics) != nil:
		return actionNothing, nil
	case record != nil && record.Final:
		return actionSend, asked
	default:
		return actionLook, asked
	}
}

// look looks at the metrics of the release of a batch.
func (f *function) look(ctx context.Context, batch *v1alpha1.ChangePod, asked v1alpha1.Judge) (judgev1alpha1.Record, error) {
	check, err := f.checkOf(ctx, asked)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	release, err := f.releaseOf(ctx, batch)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	now := f.Clock.Now()
	source, err := f.source(ctx)
	if err != nil {
		return judgev1alpha1.Record{}, err
	}
	if check == nil {
		return checkDeleted(batch.Status.MetricRecord, asked, release.start, now), nil
	}
	target := release.withEarlierOldPods(batch.Status.MetricRecord).target(batch, source.Labels)
	target.NewSince = release.newSince.with(batch.Status.MetricRecord, release.newPods)
	spec := check.Spec
	spec.AnalysisDuration.Duration = analysisDuration(asked) // the MetricCheck may have changed
	ctx, cancel := readContext(ctx, batch.Namespace)
	defer cancel()
	record := judge.Look(ctx, source.Reader, spec, target, analysisEnd(batch, asked), batch.Status.MetricRecord, now.Truncate(lookStep))
	if record.Reason == judgev1alpha1.ReasonMetricsUnavailable {
		// Prometheus may answer again and have the samples, so looks continue while the batch is
		// open or held.
		record.Final = false
	}
	return record, nil
}

// storeTime is kept free at the end of the time limit of an event (40 s), for storing the record and
// sending the verdict. Queries end before it, so a fail that some metrics show is stored, although the
// queries of other metrics do not end. A verdict that is not sent in this time is sent by the
// next wake-up. With the in-memory Broker the controller waits for the answer of the function, for 30 s
// (delivery.DefaultSendTimeout), cold start included.
const storeTime = 15 * time.Second

// readContext returns the context of the queries of a look at a release in a namespace. The context ends storeTime before
// the deadline for handling the event.
func readContext(ctx context.Context, namespace string) (context.Context, context.CancelFunc) {
	ctx = prometheus.WithNamespace(ctx, namespace)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, end.Add(-storeTime))
	}
	return context.WithCancel(ctx)
}

// source returns the configured Prometheus. If the configuration is invalid, each query fails
// with its error.
func (f *function) source(ctx context.Context) (Source, error) {
	source, err := f.CurrentSource(ctx)
	if invalid, ok := errors.AsType[*functions.ConfigError](err); ok {
		return Source{Reader: failingReader{invalid}, Labels: defaultLabels()}, nil
	}
	return source, err
}

// lookStep is the step to which the times of looks are rounded, so that batches of a
// release send the same queries.
const lookStep = 5 * time.Second

// analysisDuration returns spec.analysisDuration of the MetricCheck when the batch was created: the
// timeout of the judge minus AnalysisGrace.
func analysisDuration(asked v1alpha1.Judge) time.Duration {
	return max(time.Duration(asked.TimeoutSeconds)*time.Second-v1alpha1.AnalysisGrace, 0)
}

// analysisEnd returns the end of the analysis of a batch. It is rounded up, so that batches of a release
// send the same queries.
func analysisEnd(batch *v1alpha1.ChangePod, asked v1alpha1.Judge) time.Time {
	return batch.CreationTimestamp.Add(analysisDuration(asked) + lookStep - 1).Truncate(lookStep)
}

// checkDeleted returns the record of an analysis or a probation whose MetricCheck was deleted.
func checkDeleted(previous *judgev1alpha1.Record, asked v1alpha1.Judge, start, now time.Time) judgev1alpha1.Record {
	r := judgev1alpha1.Record{
		Verdict: judgev1alpha1.VerdictNone, Reason: ReasonNoMetricCheck, Final: true, EndTime: metav1.NewTime(now), LookTime: metav1.NewTime(now),
		Message: "MetricCheck " + asked.Check + " was deleted before the analysis or the probation ended",
		Target:  judgev1alpha1.Target{StartTime: metav1.NewTime(start)},
	}
	if previous != nil {
		r.Looks, r.Target = previous.Looks, previous.Target
	}
	return r
}

// ReasonNoMetricCheck means that the MetricCheck was deleted before the analysis or the
// probation ended.
const ReasonNoMetricCheck = "NoMetricCheck"

// store stores the record, unless the stored one is final, newer or the same but for the number of looks. It returns
// the stored object.
func (f *function) store(ctx context.Context, before *v1alpha1.ChangePod, record judgev1alpha1.Record) (*v1alpha1.ChangePod, error) {
	bounded := storable(record)
	return f.patch(ctx, before, func(s *v1alpha1.ChangePodStatus) {
		if old := s.MetricRecord; old == nil || !old.Final && !old.LookTime.After(record.LookTime.Time) && !isRepetition(*old, bounded) {
			s.MetricRecord = &bounded
		}
	})
}

// isRepetition reports whether a look found the same as the one before, such as the same error after the analysis.
func isRepetition(before, after judgev1alpha1.Record) bool {
	after.Looks = before.Looks
	return equality.Semantic.DeepEqual(before, after)
}

// patch changes the status of a batch by compare-and-swap, and returns the stored object. It
// changes nothing if another batch has the name.
func (f *function) patch(ctx context.Context, before *v1alpha1.ChangePod, change func(*v1alpha1.ChangePodStatus)) (*v1alpha1.ChangePod, error) {
	batches := f.Change.AppV1alpha1().ChangePods(before.Namespace)
	return functions.PatchStatusFrom(ctx, batches, before, statuspatch.ChangePodRecord, func(batch *v1alpha1.ChangePod) error {
		if batch.UID != before.UID {
			return errOutdated
		}
		change(&batch.Status)
		return nil
	})
}

// send sends the verdict of a record.
func (f *function) send(ctx context.Context, batch *v1alpha1.ChangePod, w events.ChangePodReady, record *judgev1alpha1.Record) error {
	e, err := events.New(events.JudgeVerdict{
		Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, Version: w.Version, Attempt: w.Attempt,
		Judge: v1alpha1.JudgeMetrics, Stage: v1alpha1.StagePost, Verdict: string(record.Verdict),
		Reason: record.Reason, Message: record.Message, Time: metav1.NewMicroTime(record.LookTime.Time),
	})
	if err != nil {
		return functions.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	if err := f.Signer.Sign(ctx, &e); err != nil {
		return err
	}
	if err := f.Broker.Deliver(ctx, e); err != nil {
		return fmt.Errorf("send the verdict to the Broker: %w", err)
	}
	return nil
}
