package chaos

import (
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Word is a verdict that the server sent.
type Word struct {
	Outcome v1alpha1.Outcome
	// Hollow: a pass without rules, which retrieve has to confirm.
	Hollow bool
	// Taken: the callback was answered with 200. A verdict that is not taken
	// may still have arrived.
	Taken bool
}

// Stage has the server's actions for one stage of a batch.
type Stage struct {
	Words []Word
	// Passed: retrieve returns pass.
	Passed bool
}

// Ends are the correct outcomes. There are several if it is unknown which
// callbacks arrived.
type Ends struct{ Pass, Fail, None bool }

func (e Ends) String() string {
	var out []string
	for word, may := range map[string]bool{"pass": e.Pass, "fail": e.Fail, "no verdict": e.None} {
		if may {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// Ends returns the correct outcomes of a stage.
func (s Stage) Ends() Ends {
	var taken, may Ends
	for _, w := range s.Words {
		e := &may
		if w.Taken {
			e = &taken
		}
		switch {
		case w.Outcome == v1alpha1.OutcomeFail:
			e.Fail = true
		case w.Outcome == v1alpha1.OutcomePass && !w.Hollow:
			e.Pass = true
		default:
			e.None = true
			e.Pass = e.Pass || s.Passed // if retrieve was reachable
		}
	}
	switch {
	case taken.Fail:
		return Ends{Fail: true}
	case taken == Ends{}:
		taken = Ends{None: true, Pass: s.Passed}
	case taken.Pass && slices.ContainsFunc(s.Words, Word.passes):
		taken.None = false // a judged pass overrides a hollow one
	}
	return Ends{Pass: taken.Pass || may.Pass, Fail: may.Fail, None: taken.None}
}

func (w Word) passes() bool { return w.Taken && w.Outcome == v1alpha1.OutcomePass && !w.Hollow }

// Batch is a ChangePod and the server's actions for its node.
type Batch struct {
	Name string
	Pods []string
	// Node is the server's node id; empty if it was never started.
	Node string
	// Done: its state is ExecuteDone.
	Done      bool
	Pre, Post Stage
}

// Ends returns the correct outcomes of the batch: a fail of either stage is a
// fail, and only POST passes.
func (b Batch) Ends() Ends {
	pre, e := b.Pre.Ends(), b.Post.Ends()
	if pre == (Ends{Fail: true}) {
		return pre
	}
	e.Fail = e.Fail || pre.Fail
	return e
}

// Release is the state of a release that seems to have ended.
type Release struct {
	Phase    v1alpha1.WorkloadPhase
	Counts   v1alpha1.PodCounts
	Replicas int32
	// Failed are the pods that the ChangeWorkload names.
	Failed  []string
	Batches []Batch
	// Pods are the existing pods of the release, and whether they have the
	// label of finished pods.
	Pods map[string]bool
	// Inbox is the number of verdicts in the inbox of the ChangeWorkload.
	Inbox int
	// The Deployment: it has the suspend label, is paused, has rolled out.
	Suspended, Paused, Complete bool
}

// Faults returns the contradictions between the end of a release and the
// verdicts.
func Faults(r Release) []string {
	var out []string
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	claimedBy, ends := map[string]string{}, map[string]Ends{}
	for _, b := range r.Batches {
		e := b.Ends()
		if !b.Done {
			wrong("batch %s has not ended; the verdicts say %s", b.Name, e)
		}
		if b.Node == "" {
			wrong("batch %s was never sent to the server", b.Name)
		}
		for _, pod := range b.Pods {
			if other, twice := claimedBy[pod]; twice {
				wrong("pod %s is claimed by %s and by %s", pod, other, b.Name)
			}
			claimedBy[pod], ends[pod] = b.Name, e
		}
	}
	out = append(out, wrongFails(r, ends)...)
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
		out = append(out, wrongSuccess(r, ends)...)
	}
	slices.Sort(out)
	return out
}

// wrongFails compares the reported failed pods with those that failed.
func wrongFails(r Release, ends map[string]Ends) (out []string) {
	named := map[string]bool{}
	for _, pod := range r.Failed {
		if named[pod] {
			out = append(out, fmt.Sprintf("pod %s is reported twice", pod))
		}
		named[pod] = true
		if e, claimed := ends[pod]; !claimed || !e.Fail {
			out = append(out, fmt.Sprintf("invented: pod %s is reported as failed, the verdicts say %s", pod, e))
		}
	}
	for pod, e := range ends {
		if e == (Ends{Fail: true}) && !named[pod] {
			out = append(out, fmt.Sprintf("lost: pod %s failed and is not reported", pod))
		}
	}
	return out
}

func wrongSuspend(r Release) (out []string) {
	if r.Phase != v1alpha1.WorkloadSuspend {
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

func wrongSuccess(r Release, ends map[string]Ends) (out []string) {
	if r.Phase != v1alpha1.WorkloadSuccess {
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
		if ends[pod] == (Ends{None: true}) {
			least++
		}
		if ends[pod].None {
			most++
		}
	}
	if c.Unjudged < least || c.Unjudged > most {
		out = append(out, fmt.Sprintf("%d pods count as unjudged, by the verdicts it is %d to %d", c.Unjudged, least, most))
	}
	return out
}
