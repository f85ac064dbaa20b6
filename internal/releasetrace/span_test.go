package releasetrace

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var (
	created = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	now     = created.Add(90 * time.Second)
)

// record exports spans to the returned recorder, with a sampler.
func record(t *testing.T, sampler sdktrace.Sampler) *tracetest.SpanRecorder {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	use(t, sdktrace.NewTracerProvider(IDGenerator(), sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(spans)))
	return spans
}

// use sets the global tracer provider, as package process and traceexport do.
func use(t *testing.T, p trace.TracerProvider) {
	t.Helper()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(p)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
}

// newRelease returns a ChangeWorkload that was created with the traces of the process.
func newRelease(attempt int64) *v1alpha1.ChangeWorkload {
	c := &v1alpha1.ChangeWorkload{}
	c.Namespace, c.Name, c.UID = "shop", "web--x--1", "release-1"
	c.CreationTimestamp = metav1.NewTime(created)
	c.Spec.Attempt = attempt
	Begin(context.Background(), c)()
	return c
}

// inPhase returns a copy of a ChangeWorkload in a phase.
func inPhase(c *v1alpha1.ChangeWorkload, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	next := c.DeepCopy()
	next.Status.Phase, next.Status.EntryTimeUnix = phase, now.Unix()
	next.Status.Conditions = apisConditions(phase == v1alpha1.ReleaseSuccess, "the reason", "a message with a token")
	return next
}

// newBatch returns a ChangePod of a release.
func newBatch(c *v1alpha1.ChangeWorkload, phase v1alpha1.BatchPhase) *v1alpha1.ChangePod {
	b := &v1alpha1.ChangePod{}
	b.Namespace, b.Name, b.UID = "shop", "web--x--1--x--1", "batch-1"
	b.CreationTimestamp = metav1.NewTime(created.Add(10 * time.Second))
	b.Status.Phase = phase
	b.Status.Conditions = apisConditions(false, "CheckFailed", "a message with a token")
	Join(b, c)
	return b
}

func apisConditions(succeeded bool, reason, message string) []apis.Condition {
	status := corev1.ConditionFalse
	if succeeded {
		status = corev1.ConditionTrue
	}
	return []apis.Condition{{Type: apis.ConditionSucceeded, Status: status, Reason: reason, Message: message}}
}

func TestARolloutHasASpanWhenAWriteEndsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		old, next v1alpha1.ReleasePhase
		want      bool
	}{
		"begins":                 {v1alpha1.ReleaseInit, v1alpha1.ReleaseRunning, false},
		"continues":              {v1alpha1.ReleaseRunning, v1alpha1.ReleaseNoNewBatch, false},
		"succeeds":               {v1alpha1.ReleaseRunning, v1alpha1.ReleaseSuccess, true},
		"fails its check":        {v1alpha1.ReleaseNoNewBatch, v1alpha1.ReleaseSuspend, true},
		"times out":              {v1alpha1.ReleaseRunning, v1alpha1.ReleaseFailed, true},
		"continues after that":   {v1alpha1.ReleaseFailed, v1alpha1.ReleaseRunning, false},
		"is written again":       {v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuccess, false},
		"has a late fail":        {v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend, true},
		"is passed by a person":  {v1alpha1.ReleaseSuspend, v1alpha1.ReleaseSuccess, true},
		"ends with the creation": {v1alpha1.ReleaseInit, v1alpha1.ReleaseSuccess, true},
	} {
		t.Run(name, func(t *testing.T) {
			spans := record(t, sdktrace.AlwaysSample())
			c := newRelease(1)
			RolloutIfEnded(t.Context(), inPhase(c, tc.old), inPhase(c, tc.next), now)
			got := spans.Ended()[1:]
			if !tc.want {
				if len(got) > 0 {
					t.Errorf("span %s", got[0].Name())
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d spans", len(got))
			}
			span := got[0]
			if span.Name() != "rollout" || !span.StartTime().Equal(created) || !span.EndTime().Equal(now) {
				t.Errorf("%s from %s to %s", span.Name(), span.StartTime(), span.EndTime())
			}
			if failed := span.Status().Code == codes.Error; failed == (tc.next == v1alpha1.ReleaseSuccess) {
				t.Errorf("status %v", span.Status())
			}
			if root := spans.Ended()[0].SpanContext(); span.Parent().SpanID() != root.SpanID() || span.SpanContext().TraceID() != root.TraceID() {
				t.Errorf("the parent is %v, want %v", span.Parent(), root)
			}
		})
	}
}

func TestABatchHasASpanWhenAWriteEndsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		old, next v1alpha1.BatchPhase
		want      bool
	}{
		"continues":        {v1alpha1.BatchPreWait, v1alpha1.BatchPostWait, false},
		"ends":             {v1alpha1.BatchPostSubmitted, v1alpha1.BatchExecuteDone, true},
		"is written again": {v1alpha1.BatchExecuteDone, v1alpha1.BatchExecuteDone, false},
	} {
		t.Run(name, func(t *testing.T) {
			spans := record(t, sdktrace.AlwaysSample())
			batch := newBatch(newRelease(1), tc.next)
			BatchIfEnded(t.Context(), tc.old, batch, now)
			got := spans.Ended()[1:]
			if !tc.want {
				if len(got) > 0 {
					t.Errorf("span %s", got[0].Name())
				}
				return
			}
			if len(got) != 1 || got[0].Name() != "batch" || !got[0].StartTime().Equal(batch.CreationTimestamp.Time) || !got[0].EndTime().Equal(now) {
				t.Fatalf("spans %v", got)
			}
			if got[0].SpanContext().SpanID() != trace.SpanContextFromContext(OfBatch(t.Context(), batch)).SpanID() {
				t.Error("events of the batch have another parent than its span")
			}
		})
	}
}

// The first process begins the trace, and makes a span whose child another process made before.
func TestAnotherProcessContinuesTheTraceWithTheSameIDs(t *testing.T) {
	first := record(t, sdktrace.AlwaysSample())
	c := newRelease(1)
	batch := newBatch(c, v1alpha1.BatchExecuteDone)
	BatchIfEnded(t.Context(), v1alpha1.BatchPostWait, batch, now)
	RolloutIfEnded(t.Context(), inPhase(c, v1alpha1.ReleaseRunning), inPhase(c, v1alpha1.ReleaseSuccess), now)

	second := record(t, sdktrace.AlwaysSample())
	BatchVerdict(t.Context(), batch, Verdict{Judge: "server", Stage: v1alpha1.StagePre, Verdict: "pass", Received: created, Stored: now})
	BatchIfEnded(t.Context(), v1alpha1.BatchPostWait, batch, now)
	RolloutIfEnded(t.Context(), inPhase(c, v1alpha1.ReleaseRunning), inPhase(c, v1alpha1.ReleaseSuccess), now)

	var before, after []trace.SpanID
	for _, s := range first.Ended()[1:] {
		before = append(before, s.SpanContext().SpanID())
	}
	verdict := second.Ended()[0]
	for _, s := range second.Ended()[1:] {
		after = append(after, s.SpanContext().SpanID())
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("ids (-first +second):\n%s", diff)
	}
	if verdict.Parent().SpanID() != before[0] || verdict.SpanContext().TraceID() != first.Ended()[0].SpanContext().TraceID() {
		t.Errorf("the parent of the verdict is %v, want the batch", verdict.Parent())
	}
}

func TestAReleaseThatIsNotSampledHasNoTrace(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt  int64
		provider trace.TracerProvider
	}{
		"traces are off":     {1, noop.NewTracerProvider()},
		"it is not sampled":  {1, sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))},
		"it is the baseline": {0, sdktrace.NewTracerProvider()},
	} {
		t.Run(name, func(t *testing.T) {
			use(t, tc.provider)
			c := newRelease(tc.attempt)
			spans := record(t, sdktrace.AlwaysSample())
			batch := newBatch(c, v1alpha1.BatchExecuteDone)
			if c.Annotations != nil || batch.Annotations != nil {
				t.Errorf("annotations %v and %v", c.Annotations, batch.Annotations)
			}
			BatchIfEnded(t.Context(), v1alpha1.BatchPostWait, batch, now)
			RolloutIfEnded(t.Context(), inPhase(c, v1alpha1.ReleaseRunning), inPhase(c, v1alpha1.ReleaseSuccess), now)
			BatchVerdict(t.Context(), batch, Verdict{Verdict: "pass"})
			OrderVerdict(t.Context(), c, Verdict{Verdict: "pass"})
			if got := spans.Ended(); len(got) > 0 {
				t.Errorf("span %s", got[0].Name())
			}
			if OfRelease(t.Context(), c) != t.Context() || OfBatch(t.Context(), batch) != t.Context() {
				t.Error("events carry a trace")
			}
		})
	}
}

// The annotation may be written by anybody who may write the object.
func TestAnInvalidAnnotationIsNoTrace(t *testing.T) {
	for _, value := range []string{"", "x", "00-00000000000000000000000000000000-0000000000000000-01", "00-0102-0304-01"} {
		c := &v1alpha1.ChangeWorkload{}
		c.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: value}
		if OfRelease(t.Context(), c) != t.Context() {
			t.Errorf("%q is a trace", value)
		}
	}
}

func TestSpansHaveNoMessages(t *testing.T) {
	spans := record(t, sdktrace.AlwaysSample())
	c := newRelease(1)
	BatchIfEnded(t.Context(), v1alpha1.BatchPostWait, newBatch(c, v1alpha1.BatchExecuteDone), now)
	RolloutIfEnded(t.Context(), inPhase(c, v1alpha1.ReleaseRunning), inPhase(c, v1alpha1.ReleaseFailed), now)
	BatchVerdict(t.Context(), newBatch(c, v1alpha1.BatchPostWait), Verdict{Verdict: "a message with a token"})
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Value.String() == "a message with a token" {
				t.Errorf("attribute %s of %s is a message", a.Key, s.Name())
			}
		}
		if s.Status().Description == "a message with a token" {
			t.Errorf("the status of %s is a message", s.Name())
		}
	}
}
