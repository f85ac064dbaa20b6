package releasetrace

import (
	"context"
	"fmt"
	"maps"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// Tracer returns the tracer of the process. Spans have names, numbers and reasons as attributes, and
// neither messages, which may quote anything, nor content of pods.
func Tracer() trace.Tracer { return otel.Tracer(metrics.Scope) }

// Begin starts the trace of a release, if it is sampled, and annotates its new ChangeWorkload. The caller
// calls created when the ChangeWorkload exists. A baseline is not judged and has no trace.
func Begin(ctx context.Context, c *v1alpha1.ChangeWorkload) (created func()) {
	if c.Release().IsBaseline() {
		return func() {}
	}
	_, span := Tracer().Start(ctx, "release", trace.WithNewRoot(), trace.WithAttributes(ofRelease(c)...))
	if !span.SpanContext().IsSampled() {
		return func() {}
	}
	c.Annotations = merged(c.Annotations, annotationOf(span.SpanContext()))
	return func() { span.End() }
}

// Join adds a new ChangePod to the trace of its release.
func Join(batch *v1alpha1.ChangePod, c *v1alpha1.ChangeWorkload) {
	if root := rootOf(c); root.IsValid() {
		batch.Annotations = merged(batch.Annotations, annotationOf(root))
	}
}

// RolloutIfEnded makes the span of a rollout that a write of the status ended; of other writes none.
func RolloutIfEnded(ctx context.Context, old, next *v1alpha1.ChangeWorkload, now time.Time) {
	root := rootOf(next)
	if !root.IsValid() || old.Status.Phase == next.Status.Phase || !ended(next.Status.Phase) {
		return
	}
	id := spanID(fmt.Sprintf("%s/%s/%d", next.UID, next.Status.Phase, next.Status.EntryTimeUnix))
	attributes := append(ofRelease(next), attribute.String("breakwater.status", string(next.Status.Phase)))
	finish(ctx, root, id, finished{
		name: "rollout", from: next.CreationTimestamp.Time, to: now, attributes: attributes,
		failed: next.Status.Phase != v1alpha1.ReleaseSuccess, reason: next.Status.GetCondition(apis.ConditionSucceeded).GetReason(),
	})
}

// ended reports whether a rollout in the phase has ended.
func ended(phase v1alpha1.ReleasePhase) bool {
	switch phase {
	case v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed:
		return true
	case v1alpha1.ReleaseInit, v1alpha1.ReleaseRunning, v1alpha1.ReleaseNoNewBatch:
	}
	return false
}

// BatchIfEnded makes the span of a batch that a write of the status ended; of other writes none.
func BatchIfEnded(ctx context.Context, before v1alpha1.BatchPhase, next *v1alpha1.ChangePod, now time.Time) {
	root := rootOf(next)
	if !root.IsValid() || before == v1alpha1.BatchExecuteDone || next.Status.Phase != v1alpha1.BatchExecuteDone {
		return
	}
	succeeded := next.Status.GetCondition(apis.ConditionSucceeded)
	finish(ctx, root, batchOf(next).SpanID(), finished{
		name: "batch", from: next.CreationTimestamp.Time, to: now,
		attributes: []attribute.KeyValue{
			attribute.String("k8s.namespace.name", next.Namespace), attribute.String("breakwater.changepod", next.Name),
			attribute.Int64("breakwater.batch", int64(next.Spec.BatchNo)), attribute.Int("breakwater.pods", len(next.Spec.PodInfos)),
			attribute.String("breakwater.status", next.Status.Message),
		},
		failed: succeeded.IsFalse(), reason: succeeded.GetReason(),
	})
}

// Verdict is a verdict that was stored.
type Verdict struct {
	Judge string
	Stage v1alpha1.Stage
	// Verdict is the verdict as received.
	Verdict string
	// Received is the time when it was received, or given by a judge other than the server.
	Received, Stored time.Time
}

// BatchVerdict makes the span of a verdict of a batch.
func BatchVerdict(ctx context.Context, batch *v1alpha1.ChangePod, v Verdict) {
	verdict(ctx, batchOf(batch), v)
}

// OrderVerdict makes the span of a verdict of the order of a release.
func OrderVerdict(ctx context.Context, c *v1alpha1.ChangeWorkload, v Verdict) {
	verdict(ctx, rootOf(c), v)
}

// verdict makes the span of a verdict, from when it was received until it was stored. Its parent is the span of ctx,
// which a Broker may have dropped.
func verdict(ctx context.Context, of trace.SpanContext, v Verdict) {
	if !of.IsValid() {
		return
	}
	if trace.SpanContextFromContext(ctx).TraceID() != of.TraceID() {
		ctx = with(ctx, of)
	}
	_, span := Tracer().Start(ctx, "verdict", trace.WithTimestamp(v.Received), trace.WithAttributes(
		attribute.String("breakwater.judge", v.Judge), attribute.String("breakwater.stage", string(v.Stage)),
		attribute.String("breakwater.verdict", string(v1alpha1.ParseVerdict(v.Verdict)))))
	span.End(trace.WithTimestamp(v.Stored))
}

// finished is a span that has ended.
type finished struct {
	name       string
	from, to   time.Time
	attributes []attribute.KeyValue
	failed     bool
	reason     string
}

// finish makes a span with an id and a parent.
func finish(ctx context.Context, parent trace.SpanContext, id trace.SpanID, f finished) {
	ctx = context.WithValue(with(ctx, parent), spanIDKey{}, id)
	_, span := Tracer().Start(ctx, f.name, trace.WithTimestamp(f.from), trace.WithAttributes(f.attributes...),
		trace.WithAttributes(attribute.String("breakwater.reason", f.reason)))
	if f.failed {
		span.SetStatus(codes.Error, f.reason)
	}
	span.End(trace.WithTimestamp(f.to))
}

func ofRelease(c *v1alpha1.ChangeWorkload) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", c.Namespace), attribute.String("breakwater.changeworkload", c.Name),
		attribute.String("breakwater.workload.kind", c.Spec.WorkloadRef.Kind),
		attribute.String("breakwater.workload.name", c.Spec.WorkloadRef.Name),
		attribute.String("breakwater.version", c.Spec.Reversion), attribute.Int64("breakwater.attempt", c.Spec.Attempt),
	}
}

func merged(annotations, more map[string]string) map[string]string {
	out := maps.Clone(annotations)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
