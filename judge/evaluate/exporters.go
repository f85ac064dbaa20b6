package evaluate

import (
	"cmp"
	"slices"
	"sort"

	"github.com/breakwater-dev/breakwater/judge/samples"
)

// mergeExporters returns one series for each key, sorted by their first samples. A key has several series if
// two kube-state-metrics are scraped, or one process twice, or if one replaced the other. Samples of the second one are
// used only after the end of the first, so that nothing counts twice. Series with an empty key are not merged.
func mergeExporters(series []samples.Series, key func(map[string]string) string) []samples.Series {
	var out []samples.Series
	place := map[string]int{}
	for _, s := range byFirstSample(series) {
		k := key(s.Labels)
		i, seen := place[k]
		if k == "" || !seen {
			place[k] = len(out)
			out = append(out, s)
			continue
		}
		merged := out[i].Points
		end := merged[len(merged)-1].T
		after := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].T > end })
		out[i].Points = slices.Concat(merged, s.Points[after:]) // the samples of the argument are shared
	}
	return out
}

// byFirstSample returns the series with at least one number, sorted by the time of the first one.
func byFirstSample(series []samples.Series) []samples.Series {
	var out []samples.Series
	for _, s := range series {
		if s.Points = samples.Numbers(s.Points); len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b samples.Series) int { return cmp.Compare(a.Points[0].T, b.Points[0].T) })
	return out
}

// restartsKey is the key of the series of restarts: each container has one.
func restartsKey(labels map[string]string) string {
	if labels["__name__"] != restartsTotal {
		return ""
	}
	return containerKey(labels)
}

// containerKey names the container of a series.
func containerKey(labels map[string]string) string {
	return instance(labels) + "/" + labels["container"]
}

// restartsByContainer returns the merged series of restarts by containerKey.
func restartsByContainer(merged []samples.Series) map[string]samples.Series {
	out := map[string]samples.Series{}
	for _, s := range merged {
		if key := restartsKey(s.Labels); key != "" {
			out[key] = s
		}
	}
	return out
}
