package altershield

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// The span of a call has all its attempts below it, and says the result.
func TestACallIsASpanWithItsAttempts(t *testing.T) {
	spans, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	w := newFixture(t, nil)
	w.script(t, `{"faults":[{"action":"submitChangeExecOrder","fault":"502","times":2}]}`)
	w.open(t)
	_, _ = w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: "none"}) // answered with 103
	var got []string
	children := map[string]int{}
	for _, s := range spans.Ended() {
		children[s.Parent().SpanID().String()]++
		for _, a := range s.Attributes() {
			if a.Key == "breakwater.result" {
				got = append(got, s.Name()+" "+a.Value.AsString()+" "+s.Status().Code.String())
				if n, want := children[s.SpanContext().SpanID().String()], map[int]int{1: 3, 2: 1}[len(got)]; n != want {
					t.Errorf("%s has %d attempts, want %d", s.Name(), n, want)
				}
			}
		}
	}
	want := []string{"altershield submitChangeExecOrder 000 Unset", "altershield submitChangeFinishNotify 103 Error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
