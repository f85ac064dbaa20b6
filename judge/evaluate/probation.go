package evaluate

import (
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// Probation is what a look at a release that has succeeded depends on. Such a look compares
// the time since the previous look with the minutes before the release. Old has these
// minutes, moved to just before the compared time.
type Probation struct {
	// Start is the start of the release, and Success the time of its success.
	Start, Success time.Time
	// Look is the number of the look, from 1.
	Look int32
}

// factor multiplies the threshold of a look. Look n may use the share 1/(n(n+1)) of the
// false-positive rate. The sum of these shares is at most 1, so the rate holds over all looks
// together, however many there are.
func (p *Probation) factor() float64 {
	if p == nil {
		return 1
	}
	n := float64(p.Look)
	return n * (n + 1)
}

// describeRange sets the ranges of evidence, which differ from those of the analysis.
func (p *Probation) describeRange(in Input, d Data, e *v1alpha1.Evidence) {
	if p == nil || e.New == nil || e.Old == nil {
		return
	}
	length := ReferenceDuration
	switch {
	case d.Signal == catalog.Health:
		e.New.From, length = metav1.NewTime(p.Success), in.Now.Sub(p.Success)
	case len(d.Old.All) == 0: // the new pods are compared with themselves before the compared time
		e.Old.Query = e.New.Query
		return
	}
	e.Old.From, e.Old.To = metav1.NewTime(p.Start.Add(-length)), metav1.NewTime(p.Start)
}

// probationShare is the smallest share of the pods that restarts or OOM kills must concern during
// probation. In hours, some of many pods restart without a fault of the version.
const probationShare = 0.1

// probationHealth applies rules to the restarts and OOM kills since the success of the release. The
// reference is the time of the same length before the release.
func probationHealth(in Input, d Data) outcome {
	now, success, start := seconds(in.Now), seconds(in.Probation.Success), seconds(in.Probation.Start)
	before := start - (now - success)
	news, olds := samples.Until(d.New.All, now), samples.Until(d.Old.All, start)
	n := sideHealthOf(news, success, now, 0, birthsOf(news, nil, success))
	old := sideHealthOf(olds, before, start, 0, birthsOf(olds, nil, before))
	o := outcome{newSamples: float64(len(n.pods)) * defaultSamples, oldSamples: math.Inf(1)}
	o.New = &v1alpha1.Side{Value: number(n.events()), Samples: int64(len(n.pods)), Pods: int32(len(n.pods))}
	o.Old = &v1alpha1.Side{Value: number(old.events()), Samples: int64(len(old.pods)), Pods: int32(len(old.pods))}
	reference := old.life
	if len(old.pods) == 0 {
		// The names of the old pods are not known. The other pods of the version were judged with it.
		old.pods, reference = n.pods, n.life.without(n.young)
	}
	worse := func(news, olds map[string]bool) bool {
		return len(news) > 0 && share(news, n.pods) >= probationShare && share(news, n.pods) > 2*share(olds, old.pods)
	}
	var found []string
	kills, restarts := 0.0, n.restartsByPod()
	for pod := range n.killed {
		kills += math.Max(1, restarts[pod])
	}
	if kills >= minRepeatedRestarts && worse(n.killed, old.killed) {
		found = append(found, "out of memory (OOMKilled): "+some(n.killed))
	}
	if pods := n.restarting(); worse(pods, old.restarting()) {
		found = append(found, "restarts again and again: "+some(pods))
	} else if pods := n.young.restarting(); worse(pods, reference.restarting()) {
		found = append(found, "restarts again and again since the start: "+some(pods))
	}
	if len(found) > 0 {
		o.reason, o.message = v1alpha1.ReasonPodsUnhealthy, strings.Join(found, "; ")
	}
	return o
}
