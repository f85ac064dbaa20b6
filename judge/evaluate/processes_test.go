package evaluate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestAProcessThatIsScrapedTwiceCountsOnce(t *testing.T) {
	const memory, goroutines, threads = "process_resident_memory_bytes", "go_goroutines", "jvm_threads_live_threads"
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

// scrapedTwice returns the series of processes with those of a second scrape.
func scrapedTwice(series []samples.Series, name string) []samples.Series {
	labeled(series, "__name__", name)
	labeled(series, "instance", "10.0.0.1:8080")
	out := slices.Clone(series)
	for _, s := range series {
		second := samples.Series{Labels: maps.Clone(s.Labels)}
		second.Labels["service"] = "web"
		for _, p := range s.Points {
			second.Points = append(second.Points, samples.Point{T: p.T + 7, V: p.V})
		}
		out = append(out, second)
	}
	return out
}

func TestASecondScrapeOfTheNewPodsDoesNotFailARelease(t *testing.T) {
	for seed := range uint64(20) {
		w := world{rand: rand.New(rand.NewPCG(seed+1, 18)), new: 2, old: 3, factor: 1, noise: 0.02}
		d := w.gauge(5 * time.Minute)
		d.Query = "go_goroutines{{{pods}}}"
		d.New.All = scrapedTwice(d.New.All, "go_goroutines")
		if e := looks(d, 5*time.Minute, "1%").Metrics[0]; e.Verdict != v1alpha1.VerdictPass {
			t.Errorf("seed %d: %s (%s), want a pass", seed+1, e.Verdict, e.Message)
		}
	}
}

// A second scrape doubles the CPU of processes and their requests, so that the CPU per request is right.
func TestASecondScrapeDoesNotChangeTheCPUPerRequest(t *testing.T) {
	const cpu, requests = "process_cpu_seconds_total", "http_requests_total"
	for name, c := range map[string]struct {
		twice string
		// factor of the CPU per request of the new pods, and load of each.
		factor, load float64
		want         v1alpha1.Verdict
	}{
		"new pods, 1.6 times the CPU per request":                {"new", 1.6, 10, v1alpha1.VerdictFail},
		"old pods, 20 % more load of the new ones, but no fault": {"old", 1, 12, v1alpha1.VerdictPass},
	} {
		for seed := range uint64(5) {
			w := world{rand: rand.New(rand.NewPCG(seed+1, 19)), new: 2, old: 3, load: c.load, factor: c.factor, noise: 0.05}
			d := w.cpu(5 * time.Minute)
			d.Query = cpu + "{{{pods}}}"
			w.load = 10
			old := w.cpu(5 * time.Minute)
			d.Old, d.Requests.Old = old.Old, old.Requests.Old
			if c.twice == "new" {
				d.New.All, d.Requests.New = scrapedTwice(d.New.All, cpu), scrapedTwice(d.Requests.New, requests)
			} else {
				d.Old.All, d.Requests.Old = scrapedTwice(d.Old.All, cpu), scrapedTwice(d.Requests.Old, requests)
			}
			if e := looks(d, 5*time.Minute, "1%").Metrics[0]; e.Verdict != c.want {
				t.Errorf("%s, seed %d: %s (%s), want %s", name, seed+1, e.Verdict, e.Message, c.want)
			}
		}
	}
}
