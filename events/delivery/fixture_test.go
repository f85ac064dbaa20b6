package delivery

import (
	"context"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// fixture is a sender with its metrics.
type fixture struct {
	*Sender
	reader  *sdkmetric.ManualReader
	stopped chan error
}

func newFixture(t *testing.T, o Options, resolve Resolve) *fixture {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	o.meterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s := NewSender(NewTarget(clock.RealClock{}, resolve), o)
	return &fixture{Sender: s, reader: reader, stopped: make(chan error, 1)}
}

func to(url string) Resolve {
	return func(context.Context) (Endpoint, error) { return Endpoint{URL: url}, nil }
}

// run runs the sender until the test ends or stop is called.
func (f *fixture) run(t *testing.T) (stop func()) {
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(f.stopped)
		f.stopped <- f.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		f.awaitStop(t)
	})
	return stop
}

// awaitStop waits until Run returns.
func (f *fixture) awaitStop(t *testing.T) {
	t.Helper()
	select {
	case err := <-f.stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run did not return within a minute")
	}
}

// value returns the sum of a metric's points that have all the labels.
func (f *fixture) value(t *testing.T, name string, labels ...attribute.KeyValue) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				if has(p.Attributes, labels) {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

func has(set attribute.Set, labels []attribute.KeyValue) bool {
	for _, l := range labels {
		if v, ok := set.Value(l.Key); !ok || v != l.Value {
			return false
		}
	}
	return true
}

// eventually waits until the metric has the value.
func (f *fixture) eventually(t *testing.T, want int64, name string, labels ...attribute.KeyValue) {
	t.Helper()
	err := poll(t, func() bool { return f.value(t, name, labels...) == want })
	if err != nil {
		t.Fatalf("%s%v is %d, want %d: %v", name, labels, f.value(t, name, labels...), want, err)
	}
}

// wakeUp returns an event whose rate is not limited.
func wakeUp(t *testing.T, name string) cloudevents.Event {
	t.Helper()
	return mustNew(t, events.ChangePodReady{
		Namespace:      "default",
		Name:           name,
		UID:            types.UID(name),
		ChangeWorkload: "sleep--x--v",
		Version:        "v",
		Attempt:        3,
		Stage:          v1alpha1.StagePre,
	})
}

// podFinished returns an event whose rate is limited.
func podFinished(t *testing.T, pod string) cloudevents.Event {
	t.Helper()
	return mustNew(t, events.PodFinished{
		Namespace: "default",
		Pod:       pod,
		PodUID:    types.UID(pod),
		Workload:  deployment(),
		Version:   "v",
		Attempt:   3,
	})
}

// started returns data with a message, which is not part of the id.
func started(message string) events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb:      events.VerbStarted,
		Namespace: "default",
		Name:      "sleep--x--v",
		UID:       "uid",
		Workload:  deployment(),
		Version:   "v",
		Attempt:   3,
		Message:   message,
	}
}

func deployment() events.Workload {
	return events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"}
}

func mustNew(t *testing.T, d events.Data) cloudevents.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
