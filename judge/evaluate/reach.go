package evaluate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// reachSeconds is how long new pods must be Ready before their lack of requests counts:
	// load balancers use a new pod after a delay, and may increase its share slowly.
	reachSeconds = 120
	// evenRequests is the mean number of requests of an old pod from which their
	// distribution is known.
	evenRequests = 10
)

// reach tests whether requests reach the new pods, if these have none. The null hypothesis
// is that a new pod gets at least half of the requests of an old pod; then the e-value is the
// likelihood ratio of no request at all. Old pods with very different numbers of requests are no
// reference: their clients keep connections, which new pods do not get. Many clients of gRPC do so although
// the requests are evenly distributed. Nor are old pods of another Revision of Knative a reference:
// spec.traffic decides which Revision gets requests.
func reach(in Input, d Data, f frame, o outcome) outcome {
	// The metric of errors decides for that of rejected requests, too: both count the same requests.
	if o.reason != v1alpha1.ReasonNoTraffic || d.Signal != catalog.Errors || d.CausedByCallers || d.ReferenceBefore {
		return o
	}
	pods, since := readySince(in, f)
	if pods == 0 || ofRevision(in) || persistentConnections(in) || seconds(in.Now)-since < reachSeconds || !readWithoutRequests(in) {
		return o
	}
	spans := samples.Spans(d.Old.All)
	counts := count(d.Old.All, spans, f, f.readSince(), nil).pooled()[""]
	least, sum, old, olds, after := math.Inf(1), 0.0, 0.0, 0.0, 0.0
	for pod, cells := range counts {
		if n := cells.Sum(f.grid.Cell(since)+1, f.last); n > 0 {
			after += n
			olds++
		}
		if spans[pod].First > f.grid.Origin-startupSeconds {
			continue
		}
		n := cells.Sum(-f.before, -1)
		least = math.Min(least, n)
		sum += n
		old++
	}
	if old < 2 || olds == 0 || sum/old < evenRequests || least < sum/old/2 {
		return o
	}
	// An old pod without requests often has no series of requests, so the distribution is
	// unknown.
	if ready := readyBefore(in, f); ready == 0 || float64(ready) > old {
		return o
	}
	o.logE = after * math.Log1p(float64(pods)/(2*olds))
	o.message = fmt.Sprintf("%d new pods are Ready and have no requests, and %.0f old ones have %.0f at the same time", pods, olds, after)
	return o
}

// ofRevision reports whether the new pods are those of a Revision.
func ofRevision(in Input) bool {
	return slices.ContainsFunc(in.Metrics, func(d Data) bool {
		return slices.ContainsFunc(d.New.All, func(s samples.Series) bool { return s.Labels["container"] == catalog.QueueProxy })
	})
}

// persistentConnections reports whether callers of the pods keep their connections: the old pods are servers of gRPC.
// Probes are no such callers.
func persistentConnections(in Input) bool {
	const health = "grpc.health.v1.Health"
	return slices.ContainsFunc(in.Metrics, func(d Data) bool {
		return slices.ContainsFunc(d.Old.All, func(s samples.Series) bool {
			name := s.Labels["__name__"]
			return (strings.HasPrefix(name, "grpc_server_") || strings.HasPrefix(name, "rpc_server_")) &&
				s.Labels["grpc_service"] != health && s.Labels["rpc_service"] != health && !strings.HasPrefix(s.Labels["rpc_method"], health+"/")
		})
	})
}

// readWithoutRequests reports whether series of the processes in the new pods are read, and
// none of them counts a request. Otherwise the series of their requests may have another name,
// or are not scraped.
func readWithoutRequests(in Input) bool {
	read := false
	for _, d := range in.Metrics {
		if d.Signal == catalog.Health {
			continue
		}
		for _, s := range samples.Until(d.New.All, seconds(in.Now)) {
			points := samples.Numbers(s.Points)
			if len(points) == 0 {
				continue
			}
			if requests := d.Signal == catalog.Errors || d.Signal == catalog.Latency; requests && points[len(points)-1].V > 0 {
				return false
			}
			// The kubelet reports containers, whatever is in them.
			read = read || !strings.HasPrefix(s.Labels["__name__"], "container_")
		}
	}
	return read
}

// readiness returns the samples of condition Ready, 1 or 0, of each pod of one side until now.
func readiness(in Input, side func(Data) []samples.Series) [][]samples.Point {
	var ready []samples.Series
	for _, d := range in.Metrics {
		if d.Signal != catalog.Health {
			continue
		}
		for _, s := range samples.Until(side(d), seconds(in.Now)) {
			if s.Labels["__name__"] == "kube_pod_status_ready" && s.Labels["condition"] == "true" {
				ready = append(ready, s)
			}
		}
	}
	var pods [][]samples.Point
	for _, s := range mergeExporters(ready, instance) {
		pods = append(pods, s.Points)
	}
	return pods
}

// readyBefore returns the number of old pods that were Ready some time before the change.
func readyBefore(in Input, f frame) int {
	pods := 0
	for _, points := range readiness(in, func(d Data) []samples.Series { return d.Old.All }) {
		if slices.ContainsFunc(points, func(p samples.Point) bool { return p.V == 1 && p.T <= f.grid.Origin-startupSeconds }) {
			pods++
		}
	}
	return pods
}

// readySince returns the number of the new pods and the time since when all of them
// are Ready, and 0 pods if one is not Ready or nothing is known.
func readySince(in Input, f frame) (pods int, since float64) {
	since = f.grid.Origin
	for _, points := range readiness(in, func(d Data) []samples.Series { return d.New.All }) {
		last := points[len(points)-1]
		if last.V != 1 || seconds(in.Now)-last.T > 3*math.Max(f.step, minimumCell) {
			return 0, since
		}
		for _, p := range points {
			if p.V != 1 {
				since = math.Max(since, p.T)
			}
		}
		pods++
	}
	return pods, since
}
