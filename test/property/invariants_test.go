package property

import (
	"fmt"
	"slices"
	"time"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// checkEnd checks the invariants of the end of a history.
func (w *fixture) checkEnd() {
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		batches := w.batchesOf(c)
		for _, p := range batches {
			w.checkBatch(c, p)
		}
		w.checkRelease(c, batches)
		w.checkAnnounced(c)
	}
	for _, p := range w.promises {
		w.checkPromise(p)
	}
}

func (w *fixture) batchesOf(c *v1alpha1.ChangeWorkload) []*v1alpha1.ChangePod {
	return slices.DeleteFunc(all[*v1alpha1.ChangePod](w.api, "changepods"), func(p *v1alpha1.ChangePod) bool {
		return p.OwnerReferences[0].UID != c.UID
	})
}

// checkBatch: the batch has ended, results of people are unchanged, and each pass
// is from the server.
func (w *fixture) checkBatch(c *v1alpha1.ChangeWorkload, p *v1alpha1.ChangePod) {
	// After a failed order check no batch is started.
	sub := p.Status.SubmissionOf(v1alpha1.StagePre)
	held := orderCheckFailed(c) && (sub == nil || sub.AnsweredTime == nil)
	if p.Status.Phase != v1alpha1.BatchExecuteDone && !held {
		w.violated("%s does not end: it is %q; its release is %q", p.Name, p.Status.Phase, c.Status.Phase)
	}
	for pod, verdict := range w.personResults[p.UID] {
		if r := p.Status.ResultOf(pod); r == nil || r.Source != "" || r.Verdict != verdict {
			w.violated("the result of a person is %s for %s, but %+v is stored", verdict, pod, r)
		}
	}
	for _, v := range p.Status.Verdicts {
		passed := v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomePass && !v.UnconfirmedPass
		if passed && !w.judged(v.NodeID, v.Stage) {
			w.violated("%s of %s is a pass that the server did not give", v.Stage, p.Name)
		}
	}
}

func orderCheckFailed(c *v1alpha1.ChangeWorkload) bool {
	outcome, _ := c.Status.OrderOutcome()
	return outcome == v1alpha1.OutcomeFail
}

func (w *fixture) judged(node string, stage v1alpha1.Stage) bool {
	for _, n := range w.server.Nodes() {
		if n.ID == node {
			return n.Passed[double.Stage(stage)]
		}
	}
	return false
}

// checkPromise: a fail whose callback was answered with 200 is recorded, if its
// batch or order exists.
func (w *fixture) checkPromise(p promise) {
	if v1alpha1.ParseVerdict(p.Data.Verdict) != v1alpha1.OutcomeFail {
		return
	}
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		if !c.Status.Order.HasNode(p.Data.NodeID) {
			continue
		}
		if v := c.Status.OrderVerdictOf(p.Data.Stage); v == nil || v1alpha1.ParseVerdict(v.Verdict) != v1alpha1.OutcomeFail {
			w.violated("the fail of the order of %s %s was answered with 200 (node known then: %t) and is lost: %+v", c.Name, p.Data.Stage, p.known, v)
		}
	}
	for _, batch := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		if !batch.Status.HasNode(p.Data.NodeID) {
			continue
		}
		v := batch.Status.VerdictOf(p.Data.Stage)
		if v == nil || v1alpha1.ParseVerdict(v.Verdict) != v1alpha1.OutcomeFail {
			w.violated("the fail of %s %s was answered with 200 (node known then: %t) and is lost: %+v", batch.Name, p.Data.Stage, p.known, v)
		}
	}
}

// checkAnnounced: the Broker has accepted the event of the state.
func (w *fixture) checkAnnounced(c *v1alpha1.ChangeWorkload) {
	verb, ok := map[v1alpha1.ReleasePhase]events.Verb{
		v1alpha1.ReleaseSuccess: events.VerbSucceeded, v1alpha1.ReleaseSuspend: events.VerbSuspended, v1alpha1.ReleaseFailed: events.VerbFailed,
	}[c.Status.Phase]
	if !ok || c.Spec.Attempt == 0 {
		return
	}
	id := events.ChangeWorkload{Verb: verb, UID: c.UID, Version: c.Spec.Reversion, EntryTimeUnix: c.Status.EntryTimeUnix}.ID()
	if !w.accepted[id] {
		w.violated("%s is %s since %s, and the Broker has no event of it", c.Name, c.Status.Phase, c.Status.EntryTime)
	}
	if n := len(c.Status.Announcements); n > 0 {
		w.violated("%d announcements of %s remain", n, c.Name)
	}
}

// checkRelease: the release ended, and not as a Success after a fail.
func (w *fixture) checkRelease(c *v1alpha1.ChangeWorkload, batches []*v1alpha1.ChangePod) {
	if n := len(c.Status.Inbox); n > 0 {
		w.violated("%d verdicts stay in the inbox of %s", n, c.Name)
	}
	failed, unjudged, notPassed := []string{}, []string{}, []string{}
	for _, p := range batches {
		for _, info := range p.Spec.PodInfos {
			switch o, _ := p.OutcomeOf(info.Pod); o {
			case v1alpha1.OutcomeFail:
				failed = append(failed, info.Pod)
			case v1alpha1.OutcomeNoVerdict:
				unjudged = append(unjudged, info.Pod)
				if w.policyOf(p) != v1alpha1.NoVerdictPass {
					notPassed = append(notPassed, info.Pod)
				}
			}
		}
	}
	phase := c.Status.Phase
	ended := []v1alpha1.ReleasePhase{v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed}
	if !slices.Contains(ended, phase) {
		w.violated("%s does not end: it is %q: %s", c.Name, phase, w.describe(c))
	}
	if phase == v1alpha1.ReleaseSuccess && (len(failed) > 0 || orderCheckFailed(c)) {
		w.violated("%s is a Success, but %v failed; the order failed: %t", c.Name, failed, orderCheckFailed(c))
	}
	release, _ := v1alpha1.ReleaseOf(w.deployment().Annotations)
	if c.Spec.Reversion != release.Version || c.Spec.Attempt != release.Attempt {
		return
	}
	w.checkCurrentRelease(c, failed, unjudged, notPassed)
}

// checkCurrentRelease checks the current release. failed and unjudged are the pods with
// this outcome; notPassed are the unjudged pods that the policy does not pass.
func (w *fixture) checkCurrentRelease(c *v1alpha1.ChangeWorkload, failed, unjudged, notPassed []string) {
	d, phase := w.deployment(), c.Status.Phase
	if (len(failed) > 0 || orderCheckFailed(c)) && phase != v1alpha1.ReleaseSuspend {
		w.violated("%s is %q, but %v failed; the order failed: %t: %s", c.Name, phase, failed, orderCheckFailed(c), w.describe(c))
	}
	if phase == v1alpha1.ReleaseSuspend {
		if len(failed) == 0 && !orderCheckFailed(c) && w.policy != v1alpha1.NoVerdictFail && w.contradicted != v1alpha1.NoVerdictFail {
			w.violated("%s is suspended, but nothing failed: %s", c.Name, w.describe(c))
		}
		if d.Labels[v1alpha1.SuspendLabel] == "" {
			w.violated("%s is suspended, but the Deployment is not", c.Name)
		}
	}
	// Lost and late events can delay the first call beyond order-timeout, and the
	// reconciler may find the timeout only after the faults ended.
	end := c.Status.GetCondition(apis.ConditionSucceeded)
	if phase == v1alpha1.ReleaseFailed && !w.wasDown && end != nil && end.LastTransitionTime.Inner.After(w.quietSince.Add(time.Minute)) {
		w.violated("%s is Failed, but the server was always reachable: %s", c.Name, w.describe(c))
	}
	if phase != v1alpha1.ReleaseSuccess {
		return
	}
	if w.anyPodExists(notPassed) {
		w.violated("%s is a Success, but %v are unjudged and do not pass", c.Name, notPassed)
	}
	if w.anyPodExists(unjudged) && (c.Status.Counts.Unjudged == 0 || !c.Status.GetCondition(v1alpha1.ReleaseJudged).IsFalse()) {
		w.violated("%s is a Success, but does not report that %v are unjudged", c.Name, unjudged)
	}
	if d.Labels[v1alpha1.SuspendLabel] != "" || d.Annotations[v1alpha1.HoldAnnotation] != "" || d.Spec.Paused {
		w.violated("%s is a Success, but the Deployment is held: %v %v %t", c.Name, d.Labels, d.Annotations, d.Spec.Paused)
	}
}

// anyPodExists reports whether one of the pods exists.
func (w *fixture) anyPodExists(pods []string) bool {
	return slices.ContainsFunc(pods, func(name string) bool {
		_, ok := w.api.objects[id{"pods", namespace, name}]
		return ok
	})
}

func (w *fixture) describe(c *v1alpha1.ChangeWorkload) string {
	d := w.deployment()
	return fmt.Sprintf("counts %+v, conditions %v, Deployment %v %v paused %t status %+v",
		c.Status.Counts, c.Status.Conditions, d.Labels, d.Annotations, d.Spec.Paused, d.Status)
}

// checkClaims: a pod is claimed at most once in a release.
func (w *fixture) checkClaims() {
	seen := map[string]string{}
	for _, p := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		for _, info := range p.Spec.PodInfos {
			of := string(p.OwnerReferences[0].UID) + "/" + string(info.UID)
			if other, ok := seen[of]; ok {
				w.violated("%s and %s claim pod %s", other, p.Name, info.Pod)
			}
			seen[of] = p.Name
		}
	}
}
