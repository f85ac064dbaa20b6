package evaluate

import (
	"strings"

	"github.com/breakwater-dev/breakwater/judge/samples"
)

// life has the restarts and OOM kills of pods since their creation, by instance. It is compared only
// with that of other pods: a pod may restart at each start until a dependency is there, or wait for
// its sidecar, and not because of this version.
type life struct {
	restarts map[string]map[string]float64 // by container
	kills    map[string]bool
}

func newLife() life {
	return life{restarts: map[string]map[string]float64{}, kills: map[string]bool{}}
}

// add adds a series. A container has only one of restarts: see mergeExporters.
func (l life) add(s samples.Series, points []samples.Point) {
	pod, last := instance(s.Labels), points[len(points)-1].V
	switch s.Labels["__name__"] {
	case restartsTotal:
		if l.restarts[pod] == nil {
			l.restarts[pod] = map[string]float64{}
		}
		l.restarts[pod][s.Labels["container"]] = last
	case oomEvents:
		if last > 0 {
			l.kills[pod] = true
		}
	case lastTerminated:
		if s.Labels["reason"] == oomKilled && last == 1 {
			l.kills[pod] = true
		}
	}
}

// without returns the life of all other pods.
func (l life) without(others life) life {
	out := newLife()
	for pod, restarts := range l.restarts {
		if others.restarts[pod] == nil {
			out.restarts[pod] = restarts
		}
	}
	for pod := range l.kills {
		if !others.kills[pod] {
			out.kills[pod] = true
		}
	}
	return out
}

// restartsOf returns, by name of the pod, the restarts of its container that restarted most.
func (l life) restartsOf() map[string]float64 {
	out := map[string]float64{}
	for pod, containers := range l.restarts {
		name := nameOf(pod)
		for _, n := range containers {
			out[name] = max(out[name], n)
		}
	}
	return out
}

// restarting returns the names of the pods that restarted again and again.
func (l life) restarting() map[string]bool {
	out := map[string]bool{}
	for pod, containers := range l.restarts {
		for _, n := range containers {
			if n >= minRepeatedRestarts {
				out[nameOf(pod)] = true
			}
		}
	}
	return out
}

// killed returns the names of the pods with an OOM kill.
func (l life) killed() map[string]bool {
	out := map[string]bool{}
	for pod := range l.kills {
		out[nameOf(pod)] = true
	}
	return out
}

// nameOf returns the name of a pod from that of its instance.
func nameOf(instance string) string {
	name, _, _ := strings.Cut(instance, "/")
	return name
}

// minRepeatedRestarts is the smallest number of restarts of one container that can be a fail at the
// start of its pod or during probation, and that of restarts of all pods with an OOM kill during probation. All containers of
// many pods restart once: if a dependency starts later, or their node reboots.
const minRepeatedRestarts = 2
