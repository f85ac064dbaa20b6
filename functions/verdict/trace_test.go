package verdict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
)

const traceparent = "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"

func traced(b *v1alpha1.ChangePod) {
	b.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: traceparent}
}

// The events are sent three times. Without the context of the trace, which a Broker may drop, the spans are those of the
// batch nevertheless.
func TestAStoredVerdictIsOneSpanAndSoIsTheBatchThatItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		edit []func(*v1alpha1.ChangePod)
		want []string
	}{
		"with a trace":    {[]func(*v1alpha1.ChangePod){traced}, []string{"verdict", "verdict", "batch"}},
		"without a trace": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			spans, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
			otel.SetTracerProvider(sdktrace.NewTracerProvider(releasetrace.IDGenerator(), sdktrace.WithSpanProcessor(spans)))
			t.Cleanup(func() { otel.SetTracerProvider(before) })
			c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, append(tc.edit, ft.Started("n", 0))...))
			server := ft.NewServerDouble(t, c, "")
			recorder := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{})
			recorder.SetFollower(submit.NewFinisher(c.Change, server.Clients, server.Clock, noop.Meter{}).WaitForCalls())
			function := verdict.New(recorder, server.Clients, ft.Keys(), eventsigning.NewJudgeKeys(c.Kube.CoreV1(), server.Clock))
			for _, stage := range []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost} {
				for range 3 {
					if err := function(t.Context(), verdictOf(t, stage, "pass", "n")); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []string
			batch := trace.SpanContextFromContext(releasetrace.OfBatch(t.Context(), c.ChangePod(ft.BatchName(1))))
			for _, s := range spans.Ended() {
				if s.Name() != "verdict" && s.Name() != "batch" {
					continue // a call or an HTTP request
				}
				got = append(got, s.Name())
				if s.Name() == "verdict" && s.Parent().SpanID() != batch.SpanID() || s.SpanContext().TraceID() != batch.TraceID() {
					t.Errorf("%s has parent %v, want %v", s.Name(), s.Parent(), batch)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}
