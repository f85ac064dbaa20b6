package podpermission

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// A sum over the reasons must not add sets and pods.
func TestEachLeakCountsPermissionSets(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	r := newReporter(record.NewFakeRecorder(10), &eventSink{}, meter)
	p := pod(func(p *corev1.Pod) { p.Spec.InitContainers[0].Env[0].Value = "orders,stock,mail" })
	r.revocation(t.Context(), p, Revocation{Action: GiveUp}, errors.New("connection refused"))
	r.revocation(t.Context(), p, Revocation{Action: GiveUp, NoApplications: true}, nil)
	r.revocation(t.Context(), p, Revocation{Action: GiveUp, HasOrAwaitsGrantUnder: "former"}, nil)
	r.revocation(t.Context(), p, Revocation{Leaked: []api.Application{{ApplicationRequest: api.ApplicationRequest{Set: "orders"}}}}, nil)

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breakwater_permission_sets_leaked_total" {
				for _, point := range sum.DataPoints {
					reason, _ := point.Attributes.Value("reason")
					got[reason.AsString()] = point.Value
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{leakUnreachable: 3, leakLost: 3, leakRenamed: 3, leakCentre: 1}, got); diff != "" {
		t.Error(diff)
	}
}
