package catalog

import "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"

// CalledPodName is the label of a service graph with the name of the called pod.
const CalledPodName = "server_k8s_pod_name"

// CalledPod maps the labels of a pod to the labels of a service graph that describe the
// called service.
var CalledPod = map[string]string{
	"pod": CalledPodName, "pod_name": CalledPodName, "k8s_pod_name": CalledPodName,
	"version": "server_service_version", "service_version": "server_service_version",
}

// NamespaceLabels are the usual labels with the namespace of a pod.
var NamespaceLabels = []string{"namespace", "k8s_namespace_name", "kubernetes_namespace", "exported_namespace"}

// CalledNamespace is the label of a service graph with the namespace of the called pod.
const CalledNamespace = "server_k8s_namespace_name"

// ServiceGraph returns the metric that compares the failed requests as the callers of a service
// count them: some faults appear only in these series.
func ServiceGraph() Metric {
	return Metric{Signal: Callers, Unit: "ratio", Metric: v1alpha1.Metric{
		Name: "callers-errors", Kind: v1alpha1.KindRatio,
		Query: "traces_service_graph_request_total{{{pods}}}", Bad: "traces_service_graph_request_failed_total{{{pods}}}",
		Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightAlone,
		SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"},
	}}
}
