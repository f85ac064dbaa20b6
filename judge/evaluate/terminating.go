package evaluate

import (
	"slices"

	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// terminating has the times of the samples of each instance that is being deleted. A scale-down, a
// drain or an eviction makes a healthy pod not Ready until its containers have ended.
type terminating map[string]map[float64]bool

func terminatingOf(series []samples.Series) terminating {
	out := terminating{}
	for _, s := range series {
		if s.Labels["__name__"] != catalog.PodDeleted {
			continue
		}
		key := instance(s.Labels)
		if out[key] == nil {
			out[key] = map[float64]bool{}
		}
		for _, p := range samples.Numbers(s.Points) {
			out[key][p.T] = true
		}
	}
	return out
}

// without returns the samples of a series before the deletion of its pod. All series of one scrape have
// the same time.
func (t terminating) without(s samples.Series, points []samples.Point) []samples.Point {
	deleted := t[instance(s.Labels)]
	if len(deleted) == 0 {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p samples.Point) bool { return deleted[p.T] })
}
