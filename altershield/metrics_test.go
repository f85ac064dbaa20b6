package altershield

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

func TestAttemptsAreCountedByActionAndResult(t *testing.T) {
	reader := metric.NewManualReader()
	w := newFixture(t, nil, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	w.script(t, `{"faults":[{"action":"submitChangeExecOrder","fault":"502","times":2}]}`)
	w.open(t)
	w.open(t)
	_, _ = w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: "none"}) // counted as 103
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts, durations := map[string]int64{}, map[string]uint64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch points := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range points.DataPoints {
				counts[m.Name+" "+label(p.Attributes.Value("action"))+" "+label(p.Attributes.Value("result"))] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range points.DataPoints {
				durations[label(p.Attributes.Value("action"))+" "+label(p.Attributes.Value("result"))] = p.Count
			}
		}
	}
	want := map[string]int64{
		"breakwater_altershield_call_attempts_total submitChangeExecOrder status": 2,
		"breakwater_altershield_call_attempts_total submitChangeExecOrder 000":    1,
		"breakwater_altershield_call_attempts_total submitChangeExecOrder 106":    1,
		"breakwater_altershield_call_attempts_total submitChangeFinishNotify 103": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if durations["submitChangeExecOrder status"] != 2 {
		t.Errorf("%v", durations)
	}
}

func label(v interface{ AsString() string }, _ bool) string { return v.AsString() }

func TestTheTraceContextIsSentToTheServer(t *testing.T) {
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("traceparent")
		_, _ = w.Write([]byte(`{"success":true}`))
	}))
	defer server.Close()
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	if err := New(Config{BaseURL: server.URL}).CloseOrder(ctx, CloseOrder{OrderID: "o", State: CloseSuccess}); err != nil {
		t.Fatal(err)
	}
	if want := "00-01000000000000000000000000000000-"; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("traceparent %q", got)
	}
}

func TestAnAttemptThatTheBreakerStoppedHasNoDuration(t *testing.T) {
	reader := metric.NewManualReader()
	server := &scriptedServer{} // refuses the connection
	c := server.client(time.Hour, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	for range 4 {
		_, _ = c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"}) // only the metrics are checked
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts, durations := map[string]int64{}, map[string]int64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch points := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range points.DataPoints {
				if m.Name == "breakwater_altershield_call_attempts_total" {
					counts[label(p.Attributes.Value("result"))] = p.Value
				}
			}
		case metricdata.Histogram[float64]:
			for _, p := range points.DataPoints {
				durations[label(p.Attributes.Value("result"))] = int64(p.Count)
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"io": 3, "breaker": 1}, counts); diff != "" {
		t.Error("attempts (-want +got):", diff)
	}
	if diff := cmp.Diff(map[string]int64{"io": 3}, durations); diff != "" {
		t.Error("durations (-want +got):", diff)
	}
}
