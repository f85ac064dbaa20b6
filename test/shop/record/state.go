// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"io"
)

// writeState writes the state of pods as kube-state-metrics and cAdvisor show
// it, in the text format of Prometheus.
func writeState(w io.Writer, list []*pod) {
	series := map[string][]string{}
	for _, p := range list {
		p.samples(func(metric, labels string, value float64) {
			series[metric] = append(series[metric], fmt.Sprintf("%s{namespace=%q,pod=%q%s} %v\n", metric, p.namespace, p.name, labels, value))
		})
	}
	for _, m := range stateMetrics {
		_, _ = fmt.Fprintf(w, "# TYPE %s %s\n", m.name, m.kind)
		for _, line := range series[m.name] {
			_, _ = io.WriteString(w, line)
		}
	}
}

var stateMetrics = []struct{ name, kind string }{
	{"kube_pod_info", "gauge"},
	{"kube_pod_status_ready", "gauge"},
	{"kube_pod_container_status_restarts_total", "counter"},
	{"kube_pod_container_status_waiting_reason", "gauge"},
	{"kube_pod_container_status_last_terminated_reason", "gauge"},
	{"kube_pod_container_resource_limits", "gauge"},
	{"container_cpu_usage_seconds_total", "counter"},
	{"container_memory_working_set_bytes", "gauge"},
	{"container_oom_events_total", "counter"},
}

func (p *pod) samples(add func(metric, labels string, value float64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed {
		return
	}
	const container = `,container="shop"`
	ready := map[bool]float64{true: 1}
	add("kube_pod_info", fmt.Sprintf(",node=%q,pod_ip=%q", p.node, p.ip), 1)
	add("kube_pod_status_ready", `,condition="true"`, ready[p.ready])
	add("kube_pod_container_status_restarts_total", container, float64(p.restarts))
	add("kube_pod_container_resource_limits", container+`,resource="memory",unit="byte"`, memoryLimit)
	if p.waiting != "" {
		add("kube_pod_container_status_waiting_reason", container+fmt.Sprintf(",reason=%q", p.waiting), 1)
	}
	if p.ended != "" {
		add("kube_pod_container_status_last_terminated_reason", container+fmt.Sprintf(",reason=%q", p.ended), 1)
	}
	node := container + fmt.Sprintf(",node=%q", p.node)
	add("container_oom_events_total", node, float64(p.oom))
	if p.process != nil {
		add("container_cpu_usage_seconds_total", node, cpuSeconds(p.process.Pid))
		add("container_memory_working_set_bytes", node, float64(memory(p.process.Pid)))
	}
}
