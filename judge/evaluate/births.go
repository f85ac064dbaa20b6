package evaluate

import (
	"slices"

	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// births tells which pods began in a range. All their restarts and kills count for this range, even
// those before their first sample.
type births struct {
	since float64
	// created has the creation times of pods, where kube-state-metrics shows them.
	created map[string]float64
	// unseen has the pods without such a time that began by their samples.
	unseen map[string]bool
	// last has the instance that a name had last: the pods of a StatefulSet have the names of those
	// that they replaced.
	last map[string]string
	// onlyLast: only that instance is of this version.
	onlyLast bool
	// newSince has since when pods are new, by name.
	newSince map[string]float64
}

// birthsOf reads the births since a time. The series of others show when Prometheus scraped.
func birthsOf(series, others []samples.Series, since float64) births {
	b := births{since: since, created: map[string]float64{}, last: lastInstances(series)}
	for _, s := range series {
		points := samples.Numbers(s.Points)
		if s.Labels["__name__"] != catalog.PodCreated || len(points) == 0 {
			continue
		}
		at := points[len(points)-1].V
		// Series of cAdvisor have no UID, and mean the last pod of this name.
		for _, key := range []string{instance(s.Labels), samples.Pod(s.Labels)} {
			b.created[key] = max(b.created[key], at)
		}
	}
	scraped := slices.Concat(series, others)
	g := samples.Grid{Origin: since, Width: max(minimumCell, samples.Step(scraped))}
	b.unseen = samples.Began(scraped, g, since, instance)
	return b
}

// of reports whether a series began in the range together with its pod. A series without a UID may
// belong to an earlier pod of the name, so its first sample must not be older than the creation of the
// pod. For a series with a UID this is not checked, because the clocks of Prometheus and of the API
// server differ.
func (b births) of(s samples.Series, points []samples.Point) bool {
	key, hasUID := instance(s.Labels), s.Labels["uid"] != ""
	if b.replaced(s) {
		return false
	}
	if at, known := b.created[key]; known {
		return at > b.since && (hasUID || points[0].T >= at)
	}
	return b.unseen[key]
}

// replaced reports whether the pod of a series was replaced by one of the same name.
func (b births) replaced(s samples.Series) bool {
	return s.Labels["uid"] != "" && b.last[samples.Pod(s.Labels)] != instance(s.Labels)
}

// versionFrom returns since when the samples of a series are of this version of its pod, at least first.
func (b births) versionFrom(s samples.Series, points []samples.Point, first float64) float64 {
	if !b.updatedInPlace(s, points) {
		return first
	}
	return max(first, b.newSince[samples.Pod(s.Labels)])
}

// restarts returns the restarts of a container after from, without that of an update in place, which
// restarts each updated container once. kube-state-metrics may show this restart some time after newSince.
func (b births) restarts(s samples.Series, points []samples.Point, from float64) float64 {
	restarts := increaseAfter(points, b.versionFrom(s, points, from))
	if !b.updatedInPlace(s, points) {
		return restarts
	}
	return min(restarts, max(0, increaseAfter(points, b.newSince[samples.Pod(s.Labels)])-1))
}

// updatedInPlace reports whether the pod of a series existed before it became new. A pod that began at newSince
// replaced another one.
func (b births) updatedInPlace(s samples.Series, points []samples.Point) bool {
	since, known := b.newSince[samples.Pod(s.Labels)]
	created, ok := b.created[instance(s.Labels)]
	return known && points[0].T < since && (!ok || created < since)
}

// lastInstances returns the instance of each name whose first sample is the latest.
func lastInstances(series []samples.Series) map[string]string {
	first, last := map[string]float64{}, map[string]string{}
	for _, s := range series {
		if points := samples.Numbers(s.Points); len(points) > 0 && s.Labels["uid"] != "" {
			key := instance(s.Labels)
			if at, seen := first[key]; !seen || points[0].T < at {
				first[key] = points[0].T
			}
		}
	}
	for _, key := range samples.Sorted(first) {
		if name := nameOf(key); last[name] == "" || first[key] > first[last[name]] {
			last[name] = key
		}
	}
	return last
}

// instance names a pod. Pods of a StatefulSet that replace each other have one name and different
// UIDs. Other labels can change with kube-state-metrics, for example its own address.
func instance(labels map[string]string) string {
	if uid := labels["uid"]; uid != "" {
		return samples.Pod(labels) + "/" + uid
	}
	return samples.Pod(labels)
}
