package evaluate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// unhealthyRestarts is the smallest number of restarts of all new pods that can be a
	// fail: a healthy pod restarts less than once a day.
	unhealthyRestarts = 2
	// unreadySeconds is how long a pod that was Ready must be not Ready for a fail.
	unreadySeconds = 90
	// A pod is flapping between Ready and not Ready if this share of its samples is not
	// Ready, and if it has at least flappingSamples samples.
	flappingShare   = 0.2
	flappingSamples = 10
	// neverReadySeconds is how long a new pod must fail to become Ready for a fail.
	neverReadySeconds = 240
)

// badWaiting are the reasons for which a container does not run.
var badWaiting = map[string]bool{"CrashLoopBackOff": true, "CreateContainerConfigError": true, "CreateContainerError": true,
	"ErrImageNeverPull": true, "ErrImagePull": true, "ImageInspectError": true, "ImagePullBackOff": true, "InvalidImageName": true,
	"RegistryUnavailable": true, "RunContainerError": true, "SignatureValidationFailed": true, "StartError": true}

const (
	restartsTotal  = "kube_pod_container_status_restarts_total"
	oomEvents      = "container_oom_events_total"
	lastTerminated = "kube_pod_container_status_last_terminated_reason"
	waitingReason  = "kube_pod_container_status_waiting_reason"
	oomKilled      = "OOMKilled"
)

// sideHealth is the state of the pods of one side, from the health series.
type sideHealth struct {
	pods map[string]bool
	// restartsOf has, by pod, the restarts of its container that restarted most, because a new sandbox
	// restarts all.
	restartsOf                           map[string]float64
	containers                           map[container]float64
	killed, waiting, unready, neverReady map[string]bool
	// life has what happened to the pods since their creation, and young only that of the pods that
	// began in the range.
	life, young life
}

// container is a container of a pod.
type container struct{ pod, name string }

// restarting returns the pods that restarted again and again.
func (h sideHealth) restarting() map[string]bool {
	out := map[string]bool{}
	for of, n := range h.containers {
		if n >= minRepeatedRestarts {
			out[of.pod] = true
		}
	}
	return out
}

// health applies rules, not statistics: each event is certain, and rare in
// healthy pods.
func health(in Input, d Data, f frame) outcome {
	from, now := f.grid.Origin, seconds(in.Now)
	since := from - ReferenceDuration.Seconds()
	born := birthsOf(d.New.All, d.Old.All, since)
	born.onlyLast = true // the others were those of earlier versions
	born.newSince = f.newSince
	n := sideHealthOf(samples.Until(d.New.All, now), from, now, f.step, born)
	old := sideHealthOf(samples.Until(d.Old.All, now), since, now, f.step, birthsOf(d.Old.All, d.New.All, since))
	o := outcome{newSamples: float64(len(n.pods)) * defaultSamples, oldSamples: math.Inf(1)}
	o.New = &v1alpha1.Side{Value: number(n.events() + float64(len(n.waiting)+len(n.unready))), Samples: int64(len(n.pods)), Pods: int32(len(n.pods))}
	o.Old = &v1alpha1.Side{Value: number(old.events() + float64(len(old.waiting)+len(old.unready))), Samples: int64(len(old.pods)), Pods: int32(len(old.pods))}
	if d.ReferenceBefore {
		// These series do not have the state of the same pods before the change. They have that of the
		// pods that the new ones replaced, if both have the same names; pods of a DaemonSet do not.
		old = sideHealth{pods: n.pods, life: n.life.without(n.young)}
		if d.ofNewPodsBefore(in.Target) {
			// These pods may be of a version that failed. Its kills excuse none, but a version that restarts even more is worse.
			old.life.kills = nil
		}
	}
	var found []string
	worse := func(news, olds map[string]bool, what string) bool {
		is := len(news) > 0 && share(news, n.pods) > 2*share(olds, old.pods)
		if is {
			found = append(found, fmt.Sprintf("%s: %s", what, some(news)))
		}
		return is
	}
	if !worse(n.killed, old.killed, "out of memory (OOMKilled)") {
		worse(n.young.killed(), old.life.killed(), "out of memory (OOMKilled) at the start")
	}
	worse(n.waiting, old.waiting, "containers do not run")
	worse(n.unready, old.unready, "not Ready any more")
	worse(n.neverReady, old.neverReady, "not Ready since the start")
	more := func(restarts float64) bool {
		return restarts/float64(max(1, len(n.pods))) > 2*sum(old.restartsOf)/float64(max(1, len(old.pods)))
	}
	if restarts := sum(n.restartsOf); restarts >= unhealthyRestarts && more(restarts) {
		found = append(found, fmt.Sprintf("%.0f restarts", restarts))
	} else if known := !d.ReferenceBefore || len(old.life.restarts) > 0; known && more(sum(n.restartsByPod())) {
		worse(n.young.restarting(), old.life.restarting(), "restarts again and again since the start")
	}
	if len(found) > 0 {
		o.reason, o.message = v1alpha1.ReasonPodsUnhealthy, strings.Join(found, "; ")
	}
	return o
}

// events counts the restarts and kills: since their creation for pods that began in the range.
func (h sideHealth) events() float64 {
	killed := h.young.killed()
	maps.Copy(killed, h.killed)
	return float64(len(killed)) + sum(h.restartsByPod())
}

// restartsByPod returns the restarts of each pod in the range. Those of a pod that began in the range
// count since its creation.
func (h sideHealth) restartsByPod() map[string]float64 {
	out := h.young.restartsOf()
	for pod, n := range h.restartsOf {
		out[pod] = max(out[pod], n)
	}
	return out
}

// sum returns the sum over all pods.
func sum(byPod map[string]float64) (total float64) {
	for _, n := range byPod {
		total += n
	}
	return total
}

func share(some, all map[string]bool) float64 {
	return float64(len(some)) / math.Max(1, float64(len(all)))
}

func some(pods map[string]bool) string {
	names := samples.Sorted(pods)
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}

func sideHealthOf(series []samples.Series, from, now, step float64, b births) sideHealth {
	h := sideHealth{pods: map[string]bool{}, restartsOf: map[string]float64{}, containers: map[container]float64{}, killed: map[string]bool{}, waiting: map[string]bool{}, unready: map[string]bool{}, neverReady: map[string]bool{}, life: newLife(), young: newLife()}
	deleted, merged := terminatingOf(series), mergeExporters(sidecarsAsContainers(series), restartsKey)
	restarts, waits := restartsByContainer(merged), waitsOf(merged, samples.Step(series))
	for _, s := range merged {
		pod, points := samples.Pod(s.Labels), s.Points
		h.pods[pod] = true
		h.life.add(s, points)
		if b.onlyLast && b.replaced(s) {
			continue
		}
		// The restarts and kills since the creation of a pod that was updated in place include those of its
		// updates and of the version before.
		if b.of(s, points) && !b.updatedInPlace(s, points) {
			h.young.add(s, points)
		}
		// Readiness is also that before from, all else that of this version after it.
		ofVersion, begin := pointsAfter(points, b.versionFrom(s, points, math.Inf(-1))), b.versionFrom(s, points, from)
		after := pointsAfter(points, begin)
		switch s.Labels["__name__"] {
		case restartsTotal:
			of := container{pod, s.Labels["container"]}
			h.containers[of] += b.restarts(s, points, from)
			h.restartsOf[pod] = max(h.restartsOf[pod], h.containers[of])
			if n := len(after); n > 1 && waits.at(s, after[n-1]) && waits.at(s, after[n-2]) {
				h.waiting[pod] = true
			}
		case oomEvents:
			if increaseAfter(points, begin) > 0 {
				h.killed[pod] = true
			}
		case lastTerminated:
			if s.Labels["reason"] != oomKilled || len(after) == 0 || after[len(after)-1].V != 1 {
				continue
			}
			// A kill before the change is not caused by this release. If the container has restarted since, there was another
			// one, unless the restart ended the back-off after the kill.
			of := restarts[containerKey(s.Labels)]
			until, before := pointsUntil(of.Points, after[len(after)-1].T), pointsUntil(of.Points, begin)
			ended := 0.0
			if n := len(before); n > 0 && waits.at(of, before[n-1]) && !b.updatedInPlace(of, of.Points) {
				ended = 1
			}
			if again := len(until) > 0 && b.restarts(of, until, from) > ended; again || !knownBefore(points, begin) {
				h.killed[pod] = true
			}
		case "kube_pod_status_ready":
			if s.Labels["condition"] == "true" {
				h.readiness(pod, deleted.without(s, ofVersion), from, now, step)
			}
		}
	}
	return h
}

// waits has, by containerKey, the times of the samples in which a container does not run. kube-state-metrics shows a reason
// only while it applies, so the last samples of its series may be old.
type waits struct {
	times map[string][]float64
	step  float64
}

func waitsOf(series []samples.Series, step float64) waits {
	out := waits{map[string][]float64{}, step}
	for _, s := range series {
		if s.Labels["__name__"] != waitingReason || !badWaiting[s.Labels["reason"]] {
			continue
		}
		key := containerKey(s.Labels)
		for _, p := range s.Points {
			if p.V == 1 {
				out.times[key] = append(out.times[key], p.T)
			}
		}
	}
	return out
}

// at reports whether the container of a series did not run at the time of a sample. The sample of the reason may be another
// one: of two replicas of Prometheus, Thanos chooses one for each series.
func (w waits) at(s samples.Series, p samples.Point) bool {
	return slices.ContainsFunc(w.times[containerKey(s.Labels)], func(t float64) bool { return math.Abs(t-p.T) <= w.step/2 })
}

// readiness examines only pods that still have samples: a deleted pod is not unready.
func (h sideHealth) readiness(pod string, points []samples.Point, from, now, step float64) {
	if len(points) == 0 {
		return
	}
	last := points[len(points)-1]
	if last.T <= from || now-last.T > 3*math.Max(step, 15) {
		return
	}
	since, was, ready, all := points[0].T, false, 0.0, 0.0
	for _, p := range points {
		was = was || p.V == 1
		if p.V == 1 {
			since = p.T
			ready++
		}
		if was {
			all++
		}
	}
	switch {
	case was && last.T-since >= unreadySeconds, all >= flappingSamples && all-ready >= flappingShare*all:
		h.unready[pod] = true
	case !was && last.T-since >= neverReadySeconds:
		h.neverReady[pod] = true
	}
}

func pointsAfter(points []samples.Point, from float64) []samples.Point {
	return points[sort.Search(len(points), func(i int) bool { return points[i].T > from }):]
}

func pointsUntil(points []samples.Point, until float64) []samples.Point {
	return points[:sort.Search(len(points), func(i int) bool { return points[i].T > until })]
}

func increaseAfter(points []samples.Point, from float64) float64 {
	total := 0.0
	for i := 1; i < len(points); i++ {
		if delta := points[i].V - points[i-1].V; points[i].T > from && delta > 0 {
			total += delta
		}
	}
	return total
}

func knownBefore(points []samples.Point, from float64) bool {
	return points[0].T <= from && points[0].V == 1
}
