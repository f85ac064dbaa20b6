package report_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/report"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

func workload() events.Workload {
	return events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"}
}

func finished(attempt int64) events.PodFinished {
	return events.PodFinished{
		Namespace: ft.Namespace, Pod: "sleep-1", PodUID: "uid-1", Workload: workload(), Version: ft.Version, Attempt: attempt,
	}
}

func suspended() events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: ft.Namespace, Name: ft.Release, UID: "release", Workload: workload(),
		Version: ft.Version, Attempt: 1, EntryTimeUnix: ft.Now().Unix(), Reason: v1alpha1.ReasonCheckFailed, Message: "pod sleep-1 failed",
	}
}

func eventOf(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return ft.SignedByController(t, e)
}

func newFunction(t *testing.T, c *ft.Cluster, server *functions.ClientSource) functions.Function {
	t.Helper()
	return newFunctionWith(c, server, ft.EventKeys())
}

func newFunctionWith(c *ft.Cluster, server *functions.ClientSource, keys eventsigning.Keys) functions.Function {
	return report.New(c.Change, server, keys, clocktesting.NewFakePassiveClock(ft.Now()), noop.Meter{})
}

func TestEachFactIsRecordedOnceUnderItsOwnID(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	f := newFunction(t, c, server.Clients)
	for range 2 {
		for _, d := range []events.Data{finished(1), suspended()} {
			if err := f(t.Context(), eventOf(t, d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var states []string
	for _, o := range server.Orders() {
		states = append(states, o.State)
		if o.Order == ft.OrderID {
			t.Error("a report has the id of the release's order")
		}
	}
	if diff := cmp.Diff([]string{"SUCCESS", "SUCCESS"}, states); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeOfAReleaseIsReportedAfterItsReleaseWasDeleted(t *testing.T) {
	c := ft.New(t)
	server := ft.NewServerDouble(t, c, "")
	d := suspended()
	d.OrderID, d.AppName = ft.OrderID, "shop"
	e := eventOf(t, d)
	if err := newFunction(t, c, server.Clients)(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if orders := server.Orders(); len(orders) != 1 || orders[0].Order != altershield.EventOrderID(ft.OrderID, e.ID()) {
		t.Errorf("reports are %+v", orders)
	}
	if n := c.Gets("changeworkloads"); n != 0 {
		t.Errorf("%d reads of a release whose order is in the event", n)
	}
}

func TestAnEventWithoutItsOrderIsCountedIfItsReleaseWasDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster *ft.Cluster
		data    events.Data
		want    map[string]int64
	}{
		"pod":                               {ft.New(t), finished(1), map[string]int64{"ReleaseDeleted": 1}},
		"change of an earlier version":      {ft.New(t), suspended(), map[string]int64{"ReleaseDeleted": 1}},
		"pod, and the release was replaced": {ft.New(t, ft.NewRelease()), finished(2), map[string]int64{"ReleaseDeleted": 1}},
		"pod of a baseline":                 {ft.New(t), finished(0), map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			reader, server := sdkmetric.NewManualReader(), ft.NewServerDouble(t, tc.cluster, "")
			f := report.New(tc.cluster.Change, server.Clients, ft.EventKeys(), clocktesting.NewFakePassiveClock(ft.Now()),
				sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
			if err := f(t.Context(), eventOf(t, tc.data)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resultsOf(t, reader)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

// resultsOf returns the counted reports by result.
func resultsOf(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breakwater_reports_total" {
				for _, p := range sum.DataPoints {
					result, _ := p.Attributes.Value("result")
					counts[result.AsString()] += p.Value
				}
			}
		}
	}
	return counts
}

func TestEventsOfOtherReleasesAndBaselinesAreNotReported(t *testing.T) {
	for name, tc := range map[string]struct {
		release *v1alpha1.ChangeWorkload
		data    events.Data
	}{
		"release deleted":             {nil, finished(1)},
		"pod of another attempt":      {ft.NewRelease(), finished(2)},
		"event of an earlier release": {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }), suspended()},
		"baseline":                    {ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.Spec.Attempt = 0 }), finished(0)},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t)
			if tc.release != nil {
				c = ft.New(t, tc.release)
			}
			server := ft.NewServerDouble(t, c, "")
			if err := newFunction(t, c, server.Clients)(t.Context(), eventOf(t, tc.data)); err != nil {
				t.Error(err)
			}
			if got := server.Calls(); len(got) != 0 {
				t.Errorf("calls are %v", got)
			}
		})
	}
}

func TestPodEventsUseTheCachedReleaseAndStateChangesReadIt(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	f := newFunction(t, c, server.Clients)
	for _, tc := range []struct {
		data events.Data
		gets int
	}{
		{finished(1), 1}, {finished(1), 1}, {suspended(), 2}, {suspended(), 3},
	} {
		if err := f(t.Context(), eventOf(t, tc.data)); err != nil {
			t.Fatal(err)
		}
		if n := c.Gets("changeworkloads"); n != tc.gets {
			t.Errorf("%d reads after %s, want %d", n, eventOf(t, tc.data).Type(), tc.gets)
		}
	}
}

func TestAPodOfALaterAttemptIsReportedForThatAttempt(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	f := newFunction(t, c, server.Clients)
	if err := f(t.Context(), eventOf(t, finished(1))); err != nil {
		t.Fatal(err)
	}
	const later = ft.OrderID + "+"
	c.Write(ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID, w.Spec.Attempt, w.Spec.OrderID = "later", 2, later }))
	second := eventOf(t, finished(2))
	for _, e := range []event.Event{second, eventOf(t, finished(1))} {
		if err := f(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	orders := server.Orders()
	if len(orders) != 2 || orders[1].Order != altershield.EventOrderID(later, second.ID()) {
		t.Errorf("reports are %+v", orders)
	}
}

func TestAFailedReportIsNotRetriedByTheBroker(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	server := ft.NewServerDouble(t, c, "")
	server.Script(t, double.Script{Faults: []double.FaultRule{{Fault: double.Fault404}}})
	if err := newFunction(t, c, server.Clients)(t.Context(), eventOf(t, suspended())); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAServerNothingIsReported(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	if err := newFunction(t, c, functions.NewClientSource(c.Kube))(t.Context(), eventOf(t, finished(1))); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAnEventOfAnotherTypeIsAPermanentError(t *testing.T) {
	c := ft.New(t)
	e := eventOf(t, finished(1))
	e.SetType(events.TypeChangePodReady)
	e = ft.SignedByController(t, e)
	if result := functions.ResultOf(newFunction(t, c, functions.NewClientSource(c.Kube))(t.Context(), e)); result != functions.ResultPermanent {
		t.Errorf("result is %s", result)
	}
}
