package property

import (
	"fmt"
	"slices"
	"time"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

// atTheEnd holds when nothing more happens.
func (w *world) atTheEnd() {
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		batches := w.batchesOf(c)
		for _, p := range batches {
			w.batchAtTheEnd(c, p)
		}
		w.releaseAtTheEnd(c, batches)
	}
	for _, p := range w.promises {
		w.promiseAtTheEnd(p)
	}
}

func (w *world) batchesOf(c *v1alpha1.ChangeWorkload) []*v1alpha1.ChangePod {
	return slices.DeleteFunc(all[*v1alpha1.ChangePod](w.api, "changepods"), func(p *v1alpha1.ChangePod) bool {
		return p.OwnerReferences[0].UID != c.UID
	})
}

// batchAtTheEnd: a batch has ended; a person's word stands; what counts as
// judged was judged.
func (w *world) batchAtTheEnd(c *v1alpha1.ChangeWorkload, p *v1alpha1.ChangePod) {
	// A batch of an order that failed is not started.
	sub := p.Status.SubmissionOf(v1alpha1.StagePre)
	held := orderFailed(c) && (sub == nil || sub.AnsweredTime == nil)
	if p.Status.Phase != v1alpha1.PodExecuteDone && !held {
		w.violated("%s does not end: it is %q; its release is %q", p.Name, p.Status.Phase, c.Status.Phase)
	}
	for pod, word := range w.said[p.UID] {
		if r := p.Status.ResultOf(pod); r == nil || r.Source != "" || r.Verdict != word {
			w.violated("a person said %s of %s, and %+v is there", word, pod, r)
		}
	}
	for _, v := range p.Status.Verdicts {
		passed := v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomePass && !v.Unjudged
		if passed && !w.judged(v.NodeID, v.Stage) {
			w.violated("%s of %s counts as judged pass, which the judge does not say", v.Stage, p.Name)
		}
	}
}

func orderFailed(c *v1alpha1.ChangeWorkload) bool {
	outcome, _ := c.Status.OrderOutcome()
	return outcome == v1alpha1.OutcomeFail
}

func (w *world) judged(node string, stage v1alpha1.Stage) bool {
	for _, n := range w.judge.Nodes() {
		if n.ID == node {
			return n.Passed[double.Stage(stage)]
		}
	}
	return false
}

// promiseAtTheEnd: a fail whose callback was answered with 200 is known, if the
// batch or order is there for which it was.
func (w *world) promiseAtTheEnd(p promise) {
	if v1alpha1.ParseVerdict(p.Said.Verdict) != v1alpha1.OutcomeFail {
		return
	}
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		if c.Status.Order.Node() != p.Said.NodeID {
			continue
		}
		if v := c.Status.OrderVerdictOf(p.Said.Stage); v == nil || v1alpha1.ParseVerdict(v.Verdict) != v1alpha1.OutcomeFail {
			w.violated("the fail of the order of %s %s was taken (node known then: %t) and is forgotten: %+v", c.Name, p.Said.Stage, p.known, v)
		}
	}
	for _, batch := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		if batch.Status.ChangePodID != p.Said.NodeID {
			continue
		}
		v := batch.Status.VerdictOf(p.Said.Stage)
		if v == nil || v1alpha1.ParseVerdict(v.Verdict) != v1alpha1.OutcomeFail {
			w.violated("the fail of %s %s was taken (node known then: %t) and is forgotten: %+v", batch.Name, p.Said.Stage, p.known, v)
		}
	}
}

// releaseAtTheEnd: a release ends as the verdicts say.
func (w *world) releaseAtTheEnd(c *v1alpha1.ChangeWorkload, batches []*v1alpha1.ChangePod) {
	if n := len(c.Status.Inbox); n > 0 {
		w.violated("%d verdicts stay in the inbox of %s", n, c.Name)
	}
	failed, unjudged := []string{}, []string{}
	for _, p := range batches {
		for _, info := range p.Spec.PodInfos {
			switch o, _ := p.OutcomeOf(info.Pod); o {
			case v1alpha1.OutcomeFail:
				failed = append(failed, info.Pod)
			case v1alpha1.OutcomeNoVerdict:
				unjudged = append(unjudged, info.Pod)
			}
		}
	}
	phase := c.Status.Phase
	ended := []v1alpha1.WorkloadPhase{v1alpha1.WorkloadSuccess, v1alpha1.WorkloadSuspend, v1alpha1.WorkloadFailed}
	if !slices.Contains(ended, phase) {
		w.violated("%s does not end: it is %q: %s", c.Name, phase, w.why(c))
	}
	if phase == v1alpha1.WorkloadSuccess && (len(failed) > 0 || orderFailed(c)) {
		w.violated("%s is a Success, though %v failed, and the order: %t", c.Name, failed, orderFailed(c))
	}
	release, _ := v1alpha1.ReleaseOf(w.deployment().Annotations)
	if c.Spec.Reversion != release.Version || c.Spec.Attempt != release.Attempt {
		return
	}
	w.currentAtTheEnd(c, failed, unjudged)
}

func (w *world) currentAtTheEnd(c *v1alpha1.ChangeWorkload, failed, unjudged []string) {
	d, phase := w.deployment(), c.Status.Phase
	if (len(failed) > 0 || orderFailed(c)) && phase != v1alpha1.WorkloadSuspend {
		w.violated("%s is %q, though %v failed, and the order: %t: %s", c.Name, phase, failed, orderFailed(c), w.why(c))
	}
	if phase == v1alpha1.WorkloadSuspend {
		if len(failed) == 0 && !orderFailed(c) && w.policy != v1alpha1.NoVerdictFail {
			w.violated("%s is suspended, and no pod failed: %s", c.Name, w.why(c))
		}
		if d.Labels[v1alpha1.SuspendLabel] == "" {
			w.violated("%s is suspended, and the Deployment is not", c.Name)
		}
	}
	// While events are lost and delayed, time may be up before the judge is asked;
	// that may be noticed only when things move on.
	end := c.Status.GetCondition(apis.ConditionSucceeded)
	if phase == v1alpha1.WorkloadFailed && !w.wasDown && end != nil && end.LastTransitionTime.Inner.After(w.quietSince.Add(time.Minute)) {
		w.violated("%s is Failed, and the judge was never away: %s", c.Name, w.why(c))
	}
	if phase != v1alpha1.WorkloadSuccess {
		return
	}
	if w.policy != v1alpha1.NoVerdictPass && len(unjudged) > 0 && w.present(unjudged) {
		w.violated("%s is a Success with policy %s, though nobody judged %v", c.Name, w.policy, unjudged)
	}
	if w.present(unjudged) && (c.Status.Counts.Unjudged == 0 || !c.Status.GetCondition(v1alpha1.WorkloadJudged).IsFalse()) {
		w.violated("%s is a Success, and does not say that nobody judged %v", c.Name, unjudged)
	}
	if d.Labels[v1alpha1.SuspendLabel] != "" || d.Annotations[v1alpha1.HoldAnnotation] != "" || d.Spec.Paused {
		w.violated("%s is a Success, and the Deployment is held: %v %v %t", c.Name, d.Labels, d.Annotations, d.Spec.Paused)
	}
}

// present says whether any of the pods is there.
func (w *world) present(pods []string) bool {
	return slices.ContainsFunc(pods, func(name string) bool {
		_, ok := w.api.objects[id{"pods", namespace, name}]
		return ok
	})
}

func (w *world) why(c *v1alpha1.ChangeWorkload) string {
	d := w.deployment()
	return fmt.Sprintf("counts %+v, conditions %v, Deployment %v %v paused %t status %+v",
		c.Status.Counts, c.Status.Conditions, d.Labels, d.Annotations, d.Spec.Paused, d.Status)
}

// claimedOnce: a pod is claimed once a release.
func (w *world) claimedOnce() {
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
