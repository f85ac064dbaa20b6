package evaluate

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestAProcessThatIsScrapedTwiceCountsOnce(t *testing.T) {
	const memory, goroutines, threads, cpu = "process_resident_memory_bytes", "go_goroutines", "jvm_threads_live_threads", "process_cpu_seconds_total"
	type labels = map[string]string
	for name, c := range map[string]struct {
		signal catalog.Signal
		series string
		// first and second are labels of the two series of the pod.
		first, second labels
		// want is how often the value counts.
		want float64
	}{
		"two monitors":                          {catalog.Resources, memory, labels{"job": "shop/web"}, labels{"job": "shop/all"}, 1},
		"two Services":                          {catalog.Resources, goroutines, labels{"job": "web", "service": "web"}, labels{"job": "web", "service": "web-headless"}, 1},
		"a monitor of pods and one of Services": {catalog.Resources, threads, labels{"job": "shop/web"}, labels{"job": "web", "service": "web", "endpoint": "http"}, 1},
		"two Prometheus":                        {catalog.Resources, goroutines, labels{"prometheus_replica": "k8s-0"}, labels{"prometheus_replica": "k8s-1"}, 1},
		"a target for each container":           {catalog.Resources, goroutines, labels{"container": "web"}, labels{"container": "sidecar"}, 1},
		"a counter":                             {catalog.Resources, cpu, labels{"job": "shop/web"}, labels{"job": "shop/all"}, 1},
		"two containers with a port each":       {catalog.Resources, goroutines, labels{"container": "web"}, labels{"container": "sidecar", "instance": "10.0.0.1:9090"}, 2},
		"two ports":                             {catalog.Resources, memory, nil, labels{"instance": "10.0.0.1:9090"}, 2},
		"two processes behind a port":           {catalog.Resources, memory, labels{"pid": "7"}, labels{"pid": "8"}, 2},
		"two senders of OpenTelemetry":          {catalog.Resources, memory, labels{"job": "web", "instance": "web-1"}, labels{"job": "sidecar", "instance": "web-1"}, 2},
		"two containers in cAdvisor":            {catalog.Resources, "container_memory_working_set_bytes", labels{"container": "web"}, labels{"container": "sidecar"}, 2},
		"a label of the application":            {catalog.Resources, "http_requests_in_flight", labels{"endpoint": "/cart"}, labels{"endpoint": "/buy"}, 2},
		"a metric of the MetricCheck":           {catalog.Custom, "process_orders_total", labels{"job": "mail"}, labels{"job": "invoice"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			value := func(float64) float64 { return 100 }
			d := Data{Metric: catalog.Metric{Signal: c.signal}}
			if d.Query = c.series + "{{{pods}}}"; isCounter(d.Query) {
				value = func(t float64) float64 { return 100 * t }
			}
			all := labels{"__name__": c.series, "pod": "new-0", "instance": "10.0.0.1:8080"}
			var series []samples.Series
			for _, own := range []labels{c.first, c.second} {
				one := maps.Clone(all)
				maps.Copy(one, own)
				series = append(series, seriesOf(one, 0, 290, value))
			}
			f := frame{grid: samples.Grid{Origin: start, Width: 15}}
			if got := d.podValues(series, f)["new-0"][5]; got != 100*c.want {
				t.Errorf("the value is %g, want %g", got, 100*c.want)
			}
		})
	}
}

func TestASecondScrapeOfTheNewPodsDoesNotFailARelease(t *testing.T) {
	for seed := range uint64(20) {
		w := world{rand: rand.New(rand.NewPCG(seed+1, 18)), new: 2, old: 3, factor: 1, noise: 0.02}
		d := w.gauge(5 * time.Minute)
		d.Query = "go_goroutines{{{pods}}}"
		labeled(d.New.All, "__name__", "go_goroutines")
		labeled(d.New.All, "instance", "10.0.0.1:8080")
		for _, s := range d.New.All {
			second := samples.Series{Labels: maps.Clone(s.Labels)}
			second.Labels["service"] = "web"
			for _, p := range s.Points {
				second.Points = append(second.Points, samples.Point{T: p.T + 7, V: p.V})
			}
			d.New.All = append(d.New.All, second)
		}
		if e := looks(d, 5*time.Minute, "1%").Metrics[0]; e.Verdict != v1alpha1.VerdictPass {
			t.Errorf("seed %d: %s (%s), want a pass", seed+1, e.Verdict, e.Message)
		}
	}
}
