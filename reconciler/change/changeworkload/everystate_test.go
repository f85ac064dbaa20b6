package changeworkload

import (
	"slices"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// podState is the state of a pod, for instance {unready, "pass"}.
type podState struct {
	place
	// verdict is the one of its batch (see judged), or noBatch.
	verdict string
}

type place string

const (
	ready          place = "Ready"
	unready        place = "not Ready"
	onNotReadyNode place = "on a node that is not Ready"
	gone           place = "gone"
	// uncached: the workload counts the pod as available, and the cache does not have it yet.
	uncached place = "uncached"
)

const noBatch = "no batch"

// expected reports whether a complete rollout includes the pod.
func (p podState) expected() bool {
	return p.place != gone && (p.place != onNotReadyNode || p.verdict != noBatch)
}

func (p podState) unjudged() bool    { return p.expected() && p.verdict == noBatch }
func (p podState) replaceable() bool { return p.place == gone && p.verdict == "pass" }
func (p podState) crashes() bool     { return p.place == unready && p.verdict != noBatch }

// next returns the states that the pod may have later.
func (p podState) next() (out []podState) {
	verdicts := []string{noBatch, "", "done", "pass"}
	for _, at := range []place{ready, unready, onNotReadyNode, gone, uncached} {
		for _, verdict := range verdicts[slices.Index(verdicts, p.verdict):] {
			if p.place != gone && at != uncached || at == p.place && verdict == p.verdict {
				out = append(out, podState{at, verdict})
			}
		}
	}
	return out
}

// next returns the states that some pods may have later, without those in which more than half of the pods are on nodes that
// are not Ready: then the release waits for them.
func next(pods ...podState) [][]podState {
	out := [][]podState{nil}
	for _, p := range pods {
		var longer [][]podState
		for _, former := range out {
			for _, s := range p.next() {
				longer = append(longer, append(slices.Clone(former), s))
			}
		}
		out = longer
	}
	return slices.DeleteFunc(out, func(pods []podState) bool {
		excluded := count(pods, func(p podState) bool { return p.place == onNotReadyNode })
		return 2*excluded > count(pods, func(p podState) bool { return p.place != gone })
	})
}

func count(pods []podState, is func(podState) bool) (n int) {
	for _, p := range pods {
		if is(p) {
			n++
		}
	}
	return n
}

// withPods returns a release whose pods all have the version.
func withPods(rolledOut int32, pods []podState) Input {
	in := release(0, complete1)
	in.ChangeWorkload.Status.RolledOutPods = rolledOut
	for i, p := range pods {
		if p.verdict != noBatch {
			judged(i+1, p.verdict)(&in)
		}
		switch p.place {
		case gone:
		case ready:
			finished(i+1, i+1)(&in)
			in.Workload.Replicas++
		case unready:
			starting(i + 1)(&in)
			in.Workload.Replicas++
			in.Workload.Unavailable++
		case onNotReadyNode:
			starting(i + 1)(&in)
			in.Pods[len(in.Pods)-1].OnNotReadyNode = true
		case uncached:
			in.Workload.Replicas++
		}
	}
	return in
}

// The test covers each pair of states of two pods and, if the rollout is complete, each later pair, with and without a third pod.
func TestInNoStateIsAReleaseASuccessWithoutItsPods(t *testing.T) {
	fresh := podState{uncached, noBatch}
	for _, before := range next(fresh, fresh) {
		d := Decide(withPods(0, before))
		checkSuccess(t, d, before, before)
		if d.RolledOutPods == 0 || d.Phase == v1alpha1.ReleaseSuccess {
			continue
		}
		for _, now := range next(before...) {
			for _, third := range []place{gone, ready, unready, onNotReadyNode, uncached} {
				now := append(slices.Clone(now), podState{third, noBatch})
				checkSuccess(t, Decide(withoutLater(withPods(d.RolledOutPods, now))), before, now)
			}
		}
	}
}

// checkSuccess checks that a Success has no judged pod that is not Ready, and at most as many unjudged pods as were added after the
// rollout (before) or may replace one that passed.
func checkSuccess(t *testing.T, d Decision, before, now []podState) {
	t.Helper()
	if d.Phase != v1alpha1.ReleaseSuccess {
		return
	}
	added := max(0, count(now, podState.expected)-count(before, podState.expected))
	if n := count(now, podState.unjudged); n > added+count(now, podState.replaceable) {
		t.Errorf("%d pods are unjudged, %d were added: %q, then %q", n, added, before, now)
	}
	if count(now, podState.crashes) > 0 {
		t.Errorf("a judged pod is not Ready: %q, then %q", before, now)
	}
}

// Two pods are in each state. Then all pods and nodes become Ready, and all batches pass.
func TestFromEachStateAReleaseCanEnd(t *testing.T) {
	fresh := podState{uncached, noBatch}
	for _, pods := range next(fresh, fresh) {
		for rolledOut := range int32(3) {
			c := churning{in: withPods(rolledOut, pods)}
			c.in.Workload.Replicas = int32(len(c.in.Pods))
			for i := range c.in.Pods {
				c.in.Pods[i].OnNotReadyNode, c.in.Pods[i].ReadySince = false, t0
			}
			var d Decision
			for range 3 {
				c.in.Now = c.in.Now.Add(10 * time.Minute)
				d = c.reconcile()
			}
			if d.Phase != v1alpha1.ReleaseSuccess {
				t.Errorf("%s (%s) with %d pods in the rollout: %q", d.Phase, d.Detail, rolledOut, pods)
			}
		}
	}
}
