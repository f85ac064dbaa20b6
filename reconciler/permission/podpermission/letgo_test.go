package podpermission

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"
)

func TestLetGoPodsAreSentWhenTheCentreAnswers(t *testing.T) {
	l, c := newUnsentLetGoPods(), &fakeCentre{CentreState: CentreState{Err: errors.New("connection refused")}}
	for _, uid := range []types.UID{"a", "b", "b"} {
		l.add(uid)
	}
	l.send(t.Context(), c, "shop")
	if len(c.requests) != 1 || l.count() != 2 {
		t.Errorf("while the centre is unreachable: %d calls, %d pods left", len(c.requests), l.count())
	}
	c.Err, c.requests = nil, nil
	l.send(t.Context(), c, "shop")
	sent := map[string]bool{}
	for _, r := range c.requests {
		sent[r.PodUID] = r.LetGo && r.Cluster == "shop" && r.KeepIPs == nil
	}
	if len(c.requests) != 2 || !sent["a"] || !sent["b"] || l.count() != 0 {
		t.Errorf("when the centre answers: %+v, %d pods left", c.requests, l.count())
	}
	l.send(t.Context(), c, "shop")
	if len(c.requests) != 2 {
		t.Error("a pod is sent twice")
	}
}

// A former leader sends the pods that it let go, so it counts them, too.
func TestAFormerLeaderCountsThePodsThatItHasNotSent(t *testing.T) {
	w := newFixture(t, pod(), nil)
	reader := metric.NewManualReader()
	measure(metric.NewMeterProvider(metric.WithReader(reader)).Meter(""), w.Reconciler)
	w.unsentLetGo.add("a")
	w.Demote(reconciler.UniversalBucket())
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
				got[m.Name] += p.Value
			}
		}
	}
	if n := got["breakwater_permission_unsent_let_go_pods"]; n != 1 || len(got) != 1 {
		t.Errorf("a process that does not lead has %v, want only 1 unsent pod", got)
	}
}
