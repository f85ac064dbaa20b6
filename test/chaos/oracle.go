package chaos

import (
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Verdict is a verdict that the server sent.
type Verdict struct {
	Outcome v1alpha1.Outcome
	// WithoutRules: a pass without rules, which retrieve has to confirm.
	WithoutRules bool
	// Accepted: the callback was answered with 200. A verdict that is not
	// accepted may still have been stored.
	Accepted bool
}

// Stage has the server's actions for one stage of a batch.
type Stage struct {
	Verdicts []Verdict
	// Passed: retrieve returns pass.
	Passed bool
}

// Outcomes are the outcomes that the verdicts permit. There are several if it is
// unknown which callbacks arrived.
type Outcomes struct{ Pass, Fail, None bool }

func (o Outcomes) String() string {
	var out []string
	for outcome, permitted := range map[string]bool{"pass": o.Pass, "fail": o.Fail, "no verdict": o.None} {
		if permitted {
			out = append(out, outcome)
		}
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// Outcomes returns the permitted outcomes of a stage.
func (s Stage) Outcomes() Outcomes {
	var accepted, possible Outcomes
	for _, v := range s.Verdicts {
		e := &possible
		if v.Accepted {
			e = &accepted
		}
		switch {
		case v.Outcome == v1alpha1.OutcomeFail:
			e.Fail = true
		case v.Outcome == v1alpha1.OutcomePass && !v.WithoutRules:
			e.Pass = true
		default:
			e.None = true
			e.Pass = e.Pass || s.Passed // if retrieve was reachable
		}
	}
	switch {
	case accepted.Fail:
		return Outcomes{Fail: true}
	case accepted == Outcomes{}:
		accepted = Outcomes{None: true, Pass: s.Passed}
	case accepted.Pass && slices.ContainsFunc(s.Verdicts, Verdict.passes):
		accepted.None = false // a pass with rules overrides one without
	}
	return Outcomes{Pass: accepted.Pass || possible.Pass, Fail: possible.Fail, None: accepted.None}
}

// passes reports whether the verdict is a pass that needs no confirmation.
func (v Verdict) passes() bool {
	return v.Accepted && v.Outcome == v1alpha1.OutcomePass && !v.WithoutRules
}

// Batch is a ChangePod and the server's actions for its node.
type Batch struct {
	Name string
	Pods []string
	// Node is the server's node id; empty if it was never started.
	Node string
	// Done: its state is ExecuteDone.
	Done      bool
	Pre, Post Stage
	// Starts and Finishes count the calls that the server received.
	// StartAttempts and FinishAttempts count the calls that Breakwater recorded
	// before it made them.
	Starts, StartAttempts, Finishes, FinishAttempts int
}

// Outcomes returns the permitted outcomes of the batch: a fail of either stage
// is a fail, and only POST passes.
func (b Batch) Outcomes() Outcomes {
	pre, e := b.Pre.Outcomes(), b.Post.Outcomes()
	if pre == (Outcomes{Fail: true}) {
		return pre
	}
	e.Fail = e.Fail || pre.Fail
	return e
}

// Release is the state of a release that seems to have ended.
type Release struct {
	Phase    v1alpha1.ReleasePhase
	Counts   v1alpha1.PodCounts
	Replicas int32
	// Failed are the pods that the ChangeWorkload names.
	Failed  []string
	Batches []Batch
	// Pods are the existing pods of the release, and whether they have the
	// label of finished pods.
	Pods map[string]bool
	// Inbox is the number of verdicts that stay in the inbox of the
	// ChangeWorkload; see Stuck.
	Inbox int
	// The Deployment: it has the suspend label, is paused, has rolled out.
	Suspended, Paused, Complete bool
}

// Violations returns the contradictions between the end of a release and its
// verdicts.
func Violations(r Release) []string {
	var out []string
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	claimedBy, permitted := map[string]string{}, map[string]Outcomes{}
	for _, b := range r.Batches {
		e := b.Outcomes()
		if !b.Done {
			wrong("batch %s has not ended; permitted: %s", b.Name, e)
		}
		if b.Node == "" {
			wrong("batch %s was never sent to the server", b.Name)
		}
		if b.Starts > b.StartAttempts || b.Finishes > b.FinishAttempts {
			wrong("batch %s was started %d times in %d attempts and finished %d times in %d attempts",
				b.Name, b.Starts, b.StartAttempts, b.Finishes, b.FinishAttempts)
		}
		for _, pod := range b.Pods {
			if other, twice := claimedBy[pod]; twice {
				wrong("pod %s is claimed by %s and by %s", pod, other, b.Name)
			}
			claimedBy[pod], permitted[pod] = b.Name, e
		}
	}
	out = append(out, wrongFails(r, permitted)...)
	for pod, finished := range r.Pods {
		if !finished || claimedBy[pod] == "" {
			wrong("pod %s: finished is %t, claimed by %q", pod, finished, claimedBy[pod])
		}
	}
	if r.Inbox > 0 {
		wrong("%d verdicts are left in the inbox", r.Inbox)
	}
	if len(r.Failed) > 0 {
		out = append(out, wrongSuspend(r)...)
	} else {
		out = append(out, wrongSuccess(r, permitted)...)
	}
	slices.Sort(out)
	return out
}

// wrongFails compares the reported failed pods with those that failed.
func wrongFails(r Release, permitted map[string]Outcomes) (out []string) {
	named := map[string]bool{}
	for _, pod := range r.Failed {
		if named[pod] {
			out = append(out, fmt.Sprintf("pod %s is reported twice", pod))
		}
		named[pod] = true
		if e, claimed := permitted[pod]; !claimed || !e.Fail {
			out = append(out, fmt.Sprintf("invented: pod %s is reported as failed; permitted: %s", pod, e))
		}
	}
	for pod, e := range permitted {
		if e == (Outcomes{Fail: true}) && !named[pod] {
			out = append(out, fmt.Sprintf("lost: pod %s failed and is not reported", pod))
		}
	}
	return out
}

func wrongSuspend(r Release) (out []string) {
	if r.Phase != v1alpha1.ReleaseSuspend {
		out = append(out, fmt.Sprintf("a pod failed and the release is %q", r.Phase))
	}
	if !r.Suspended {
		out = append(out, "a pod failed and the Deployment is not suspended")
	}
	if !r.Complete && !r.Paused {
		out = append(out, "a pod failed and the rollout continues")
	}
	return out
}

func wrongSuccess(r Release, permitted map[string]Outcomes) (out []string) {
	if r.Phase != v1alpha1.ReleaseSuccess {
		out = append(out, fmt.Sprintf("no pod failed and the release is %q", r.Phase))
	}
	if r.Suspended || r.Paused || !r.Complete {
		out = append(out, fmt.Sprintf("no pod failed and the Deployment is suspended=%t paused=%t complete=%t", r.Suspended, r.Paused, r.Complete))
	}
	c := r.Counts
	if c.Passed != r.Replicas || c.Pods != r.Replicas || len(r.Pods) != int(r.Replicas) {
		out = append(out, fmt.Sprintf("%d replicas, %d pods exist, the counts are %+v", r.Replicas, len(r.Pods), c))
	}
	var least, most int32
	for pod := range r.Pods {
		if permitted[pod] == (Outcomes{None: true}) {
			least++
		}
		if permitted[pod].None {
			most++
		}
	}
	if c.Unjudged < least || c.Unjudged > most {
		out = append(out, fmt.Sprintf("%d pods count as unjudged; permitted: %d to %d", c.Unjudged, least, most))
	}
	return out
}

// Former is the ChangeWorkload of an earlier release.
type Former struct {
	Name  string
	Phase v1alpha1.ReleasePhase
	// Inbox is as in Release.
	Inbox int
	// Closed: its order needs no further call to be closed.
	Closed bool
}

// FormerViolations returns the contradictions of earlier releases. After a Success of the
// current release their ChangeWorkloads are deleted; otherwise they stay, but have ended.
func FormerViolations(current v1alpha1.ReleasePhase, former []Former) (out []string) {
	for _, f := range former {
		switch {
		case current == v1alpha1.ReleaseSuccess:
			out = append(out, fmt.Sprintf("former ChangeWorkload %s (%s) is left after a Success", f.Name, f.Phase))
		case f.Phase != v1alpha1.ReleaseSuccess && f.Phase != v1alpha1.ReleaseSuspend && f.Phase != v1alpha1.ReleaseFailed:
			out = append(out, fmt.Sprintf("former ChangeWorkload %s has not ended: %q", f.Name, f.Phase))
		case !f.Closed:
			out = append(out, fmt.Sprintf("the order of former ChangeWorkload %s is not closed", f.Name))
		case f.Inbox > 0:
			out = append(out, fmt.Sprintf("%d verdicts are left in the inbox of former ChangeWorkload %s", f.Inbox, f.Name))
		}
	}
	return out
}
