package workloadinformer

import (
	"maps"
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
)

func TestTheMetricSaysWhichKindsAreWatched(t *testing.T) {
	const cloneSet = "CloneSet.apps.kruise.io"
	builtIn := map[string]int64{"Deployment.apps": 1, "StatefulSet.apps": 1, "DaemonSet.apps": 1}
	with := func(kind string, value int64) map[string]int64 {
		all := maps.Clone(builtIn)
		all[kind] = value
		return all
	}
	for name, tc := range map[string]struct {
		begin func(*testing.T, *fixture)
		want  map[string]int64
	}{
		"only the built-in kinds":    {func(*testing.T, *fixture) {}, builtIn},
		"an optional kind is served": {func(_ *testing.T, x *fixture) { x.serve("Service", true) }, with("Service.serving.knative.dev", 1)},
		"a further kind is served": {func(_ *testing.T, x *fixture) {
			x.serve("CloneSet", true)
			x.configure(cloneSetKind)
		}, with(cloneSet, 1)},
		"a further kind is missing": {func(t *testing.T, x *fixture) {
			x.configure(cloneSetKind)
			x.await(t, "the Event", x.emits(ReasonKindMissing))
		}, builtIn},
		"the controller may not list a further kind": {func(t *testing.T, x *fixture) {
			x.forbid(t, "clonesets")
			x.serve("CloneSet", true)
			x.configure(cloneSetKind)
			x.await(t, "the Event", x.emits(ReasonKindForbidden))
		}, with(cloneSet, 0)},
		"a further kind is no longer configured": {func(t *testing.T, x *fixture) {
			x.serve("CloneSet", true)
			x.configure(cloneSetKind)
			x.await(t, "the kind's objects", x.has(cloneSet, "c"))
			x.configure("")
			x.await(t, "the end of the kind", not(x.has(cloneSet, "c")))
		}, builtIn},
	} {
		t.Run(name, func(t *testing.T) {
			reader := newReader(t)
			x := start(t, object("apps.kruise.io/v1alpha1", "CloneSet", "c"))
			tc.begin(t, x)
			var got map[string]int64
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("watched %v, want %v", got, tc.want)
				}
			})
			x.await(t, "the metric", func() bool { got = watchedKinds(t, reader); return maps.Equal(got, tc.want) })
		})
	}
}

// HasSynced of an informer stays true.
func TestTheMetricSaysThatAKindIsNoLongerWatched(t *testing.T) {
	reader := newReader(t)
	x := start(t)
	open := watch.NewFake()
	x.fakeClient(t).PrependWatchReactor("clonesets", clienttesting.DefaultWatchReactor(open, nil))
	x.serve("CloneSet", true)
	x.configure(cloneSetKind)
	value := func(want int64) func() bool {
		return func() bool { return watchedKinds(t, reader)["CloneSet.apps.kruise.io"] == want }
	}
	x.await(t, "the kind to be watched", value(1))
	x.forbid(t, "clonesets")
	open.Stop()
	x.await(t, "the Event", x.emits(ReasonKindForbidden))
	if !value(0)() {
		t.Error("a kind that may no longer be watched is reported as watched")
	}
	x.clock.SetTime(x.clock.Now().Add(eventrecorder.RepeatAfter))
	x.await(t, "the Event again", func() bool { return x.count(ReasonKindForbidden) == 2 })
	x.await(t, "the time without an error", func() bool {
		x.clock.SetTime(x.clock.Now().Add(failing))
		return value(1)()
	})
}

// forbid denies the list and the watch of a resource.
func (x *fixture) forbid(t *testing.T, resource string) {
	t.Helper()
	client := x.fakeClient(t)
	for _, verb := range []string{"list", "watch"} {
		client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrs.NewForbidden(cloneSets.GroupResource(), "", nil)
		})
	}
	client.PrependWatchReactor(resource, clienttesting.DefaultWatchReactor(nil, apierrs.NewForbidden(cloneSets.GroupResource(), "", nil)))
}

func (x *fixture) fakeClient(t *testing.T) *fakedynamic.FakeDynamicClient {
	t.Helper()
	client, ok := x.watch.client.(*fakedynamic.FakeDynamicClient)
	if !ok {
		t.Fatalf("the client is %T", x.watch.client)
	}
	return client
}

// newReader returns a reader of all metrics of the test.
func newReader(t *testing.T) *sdkmetric.ManualReader {
	t.Helper()
	reader, former := sdkmetric.NewManualReader(), otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() { otel.SetMeterProvider(former) })
	return reader
}

// watchedKinds returns the values of the metric by kind.
func watchedKinds(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			gauge, ok := m.Data.(metricdata.Gauge[int64])
			if !ok || m.Name != "breakwater_workload_kind_watched" {
				continue
			}
			for _, p := range gauge.DataPoints {
				kind, _ := p.Attributes.Value("kind")
				values[kind.AsString()] = p.Value
			}
		}
	}
	return values
}
