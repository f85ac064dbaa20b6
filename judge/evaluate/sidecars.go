package evaluate

import (
	"maps"
	"strings"

	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// sidecarsAsContainers names the series of sidecars as those of containers: kube-state-metrics reports sidecars as init
// containers. It leaves out those of other init containers. They may be retried until a dependency is there, and
// the pod is not Ready before.
func sidecarsAsContainers(series []samples.Series) []samples.Series {
	sidecars := map[string]bool{}
	for _, s := range series {
		if s.Labels["__name__"] == catalog.InitContainerInfo && s.Labels["restart_policy"] == "Always" {
			sidecars[containerKey(s.Labels)] = true
		}
	}
	out := make([]samples.Series, 0, len(series))
	for _, s := range series {
		if name, ofInit := strings.CutPrefix(s.Labels["__name__"], "kube_pod_init_container_status_"); ofInit {
			if !sidecars[containerKey(s.Labels)] {
				continue
			}
			s.Labels = maps.Clone(s.Labels) // the labels of the argument are shared
			s.Labels["__name__"] = "kube_pod_container_status_" + name
		}
		out = append(out, s)
	}
	return out
}
