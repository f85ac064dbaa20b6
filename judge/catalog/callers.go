package catalog

import "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"

// ServiceGraph compares the failed requests that the callers of a service count,
// before and after the change: some faults show only there. The selector is of
// the label server.
func ServiceGraph(selector string) Metric {
	return Metric{Signal: Callers, Unit: "ratio", Metric: v1alpha1.Metric{
		Name: "callers-errors", Kind: v1alpha1.KindRatio,
		Query: "traces_service_graph_request_total" + selector, Bad: "traces_service_graph_request_failed_total" + selector,
		Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightAlone,
		SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.01"},
	}}
}
