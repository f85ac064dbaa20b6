package samples

import "maps"

// nameLabel is a label that Named adds. Labels of Prometheus that begin with __ are reserved.
const nameLabel = "__pod_name__"

// nameLabels are the podLabels that have the name of the pod whose samples a series has.
var nameLabels = []string{"pod", "pod_name", "k8s_pod_name", "kubernetes_pod_name", "exported_pod"}

// NameLabel returns the known label with the name of a pod that some labels contain, or "".
func NameLabel(contains func(label string) bool) string {
	for _, name := range nameLabels {
		if contains(name) {
			return name
		}
	}
	return ""
}

// Named returns the series with the pod that a label names. A series is copied if its other labels name
// another pod: that of the process which sends or exports its samples.
func Named(series []Series, label string) []Series {
	out := series
	for i, s := range series {
		pod := s.Labels[label]
		if pod == "" || pod == Pod(s.Labels) {
			continue
		}
		if &out[0] == &series[0] {
			out = append([]Series{}, series...)
		}
		labels := maps.Clone(s.Labels)
		labels[nameLabel] = pod
		out[i].Labels = labels
	}
	return out
}
