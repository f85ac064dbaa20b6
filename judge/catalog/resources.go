package catalog

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// Each list has alternative names of the series of one value, the best first.
var (
	cpuNames = []string{"container_cpu_usage_seconds_total", "k8s_pod_cpu_time_seconds_total", "container_cpu_time_seconds_total",
		"process_cpu_seconds_total", "process_cpu_time_seconds_total"}
	memoryNames = []string{"container_memory_working_set_bytes", "k8s_pod_memory_working_set_bytes", "container_memory_rss",
		"container_memory_usage_bytes", "k8s_pod_memory_usage_bytes", "process_resident_memory_bytes", "process_memory_usage_bytes"}
	threadNames = []string{"go_goroutines", "go_goroutine_count", "process_runtime_go_goroutines", "jvm_threads_live_threads",
		"jvm_threads_current", "jvm_thread_count", "process_threads"}
	activeNames = []string{"http_server_active_requests", "http_requests_in_flight", "http_server_requests_active"}
)

// HealthNames are the series that say whether pods restart, were killed or are
// not Ready.
var HealthNames = []string{"kube_pod_container_status_restarts_total", "kube_pod_container_status_last_terminated_reason",
	"kube_pod_container_status_waiting_reason", "kube_pod_init_container_status_restarts_total", "kube_pod_init_container_status_last_terminated_reason",
	"kube_pod_init_container_status_waiting_reason", "kube_pod_status_ready", "container_oom_events_total"}

// InitContainerInfo is a series of each init container with label restart_policy, which is Always for a sidecar.
const InitContainerInfo = "kube_pod_init_container_info"

// PodCreated is the series with the creation time of a pod, in Unix seconds.
const PodCreated = "kube_pod_created"

// PodDeleted is a series that a pod has only while it is being deleted.
const PodDeleted = "kube_pod_deletion_timestamp"

func resources(found []Found) []Metric {
	names := map[string]Found{}
	for _, f := range found {
		names[f.Name] = f
	}
	first := func(alternatives []string) (Found, bool) {
		for _, name := range alternatives {
			if f, ok := names[name]; ok {
				return f, true
			}
		}
		return Found{}, false
	}
	var out []Metric
	proxy := ""
	if hasQueueProxy(found) {
		proxy = notQueueProxy
	}
	gauge := func(name, unit string, alternatives []string, change v1alpha1.Change, weight v1alpha1.Weight) {
		f, ok := first(alternatives)
		if !ok {
			return
		}
		out = append(out, Metric{Signal: Resources, Unit: unit, WarmUp: true, PerRequest: name == "cpu", Sustained: name == "threads", Metric: v1alpha1.Metric{
			Name: name, Kind: v1alpha1.KindGauge, Query: selector(f.Name, containers(f), proxy),
			Direction: v1alpha1.DirectionHigher, Weight: weight, SmallestChange: &change,
		}})
	}
	gauge("cpu", "cores", cpuNames, v1alpha1.Change{Relative: "20%", Absolute: "0.0005"}, v1alpha1.WeightAlone)
	gauge("memory", "bytes", memoryNames, v1alpha1.Change{Relative: "30%", Absolute: "6291456"}, v1alpha1.WeightAlone)
	gauge("threads", "threads", threadNames, v1alpha1.Change{Relative: "100%", Absolute: "50"}, v1alpha1.WeightAlone)
	gauge("active-requests", "requests", activeNames, v1alpha1.Change{Relative: "100%", Absolute: "5"}, v1alpha1.WeightWithOthers)
	if f, ok := names["container_cpu_cfs_periods_total"]; ok {
		out = append(out, Metric{Signal: Resources, Unit: "ratio", WarmUp: true, Metric: v1alpha1.Metric{
			Name: "cpu-throttling", Kind: v1alpha1.KindRatio, Query: selector(f.Name, containers(f), proxy),
			Bad:       selector("container_cpu_cfs_throttled_periods_total", containers(f), proxy),
			Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightWithOthers,
			SmallestChange: &v1alpha1.Change{Relative: "100%", Absolute: "0.1"},
		}})
	}
	if _, ok := first(HealthNames); ok {
		out = append(out, Metric{Signal: Health, Unit: "events", Metric: v1alpha1.Metric{
			Name: "health", Kind: v1alpha1.KindCounter, Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightAlone,
			// Of the conditions, only true is read. Series without this label match, too.
			Query: selector("", `__name__=~"`+joinNames(append(slices.Clone(HealthNames), InitContainerInfo, PodCreated, PodDeleted))+`",condition!~"false|unknown"`),
		}})
	}
	return out
}

// containers returns the matchers that exclude the sums and the pause containers of cAdvisor.
// It returns "" if there are no series for each container.
func containers(f Found) string {
	if slices.ContainsFunc(f.Labels["container"], func(v string) bool { return v != "" && v != "POD" }) {
		return `container!="",container!="POD"`
	}
	return ""
}

func joinNames(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		out += "|" + n
	}
	return out
}
