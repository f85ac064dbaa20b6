//go:build e2e

package e2e

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// verdictTimeout: a check without a verdict ends by the policy after its
// timeout. A lost callback and a missing verdict have the same effect.
func verdictTimeout(t *testing.T, e *environment) {
	lost := failed()
	lost.Lost = true
	batchLost, orderNever := e.optedInNamespace(t), e.optedInNamespace(t)
	batchLost.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: lost})
	batchLost.create(t, builder.Deployment("web", 1, builder.Simulated))
	orderNever.setChecks(t, double.CheckRule{Match: orderCheck(double.Post), Then: double.Behaviour{Never: true}})
	orderNever.create(t, builder.Deployment("web", 1, builder.Simulated))

	c := batchLost.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); !cond.IsFalse() || c.Status.Counts.Unjudged != 1 {
		t.Errorf("condition Judged is %+v, counts %+v; want one unjudged pod", cond, c.Status.Counts)
	}
	p := batchLost.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	if cond := p.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsFalse() || cond.Reason != v1alpha1.ReasonVerdictTimedOut {
		t.Errorf("condition Judged of the batch is %+v", cond)
	}
	batchLost.awaitEvent(t, p.Name, v1alpha1.ReasonVerdictTimedOut, "unjudged, no-verdict is Pass")
	c = orderNever.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); !cond.IsFalse() || cond.Reason != v1alpha1.ReasonPassedUnjudged {
		t.Errorf("condition OrderJudged is %+v", cond)
	}
	if c.Status.Counts.Unjudged != 0 {
		t.Errorf("counts are %+v, want no unjudged pod", c.Status.Counts)
	}
}

// contradictedPass: a check that timed out or crashed is called back as a pass without
// rules, which retrieve does not confirm. The release waits for a person, although
// no-verdict is Pass.
func contradictedPass(t *testing.T, e *environment) {
	ofBatch, ofOrder := e.optedInNamespace(t), e.optedInNamespace(t)
	ofBatch.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Ending: double.TimedOut}})
	ofBatch.create(t, builder.Deployment("web", 1, builder.Simulated))
	ofOrder.setChecks(t, double.CheckRule{Match: orderCheck(double.Post), Then: double.Behaviour{Ending: double.Threw}})
	ofOrder.create(t, builder.Deployment("web", 1, builder.Simulated))

	ofBatch.awaitHeldUnjudged(t, v1alpha1.ReleaseJudged)
	p := ofBatch.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	if cond := p.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsFalse() || cond.Reason != v1alpha1.ReasonVerdictContradicted {
		t.Errorf("condition Judged of the batch is %+v", cond)
	}
	ofBatch.awaitEvent(t, p.Name, v1alpha1.ReasonVerdictContradicted, "no-verdict-contradicted is Hold")
	ofBatch.judgeByHand(t, p, "pass", "checked by hand")
	ofBatch.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)

	c := ofOrder.awaitHeldUnjudged(t, v1alpha1.ReleaseOrderJudged)
	ofOrder.run(t, "patch", "changeworkload", c.Name, "--subresource=status", "--type", "merge", "-p", overruleOrder)
	ofOrder.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// lostByTheServer: the server forgets the first start of a batch and of an order, and
// loses the callback of a pass. All are judged before their timeouts. Its rules count
// checks, and every change of a rule resets the counts, so no other test runs beside it.
func lostByTheServer(t *testing.T, e *environment) {
	forgotten := double.Behaviour{Forgotten: true}
	ofBatch, ofOrder, callback := e.optedInNamespace(t), e.optedInNamespace(t), e.optedInNamespace(t)
	ofBatch.setChecks(t, double.CheckRule{Match: batch(1, double.Pre), Nth: 1, Then: forgotten})
	ofOrder.setChecks(t, double.CheckRule{Match: orderCheck(double.Pre), Nth: 1, Then: forgotten})
	callback.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Lost: true}})
	for _, n := range []*namespace{ofBatch, ofOrder, callback} {
		n.create(t, builder.Deployment("web", 1, builder.Simulated))
	}
	for _, n := range []*namespace{ofBatch, ofOrder, callback} {
		c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
		if c.Status.Counts.Unjudged != 0 || !c.Status.GetCondition(v1alpha1.ReleaseOrderJudged).IsTrue() {
			t.Errorf("counts are %+v, conditions %+v; want everything judged", c.Status.Counts, c.Status.Conditions)
		}
		if s := c.Status.Order.SubmissionOf(v1alpha1.StagePre); n == ofOrder && (s.Resumptions != 1 || len(s.EarlierNodes) != 1) {
			t.Errorf("the start of the order is %+v, want one repetition", s)
		}
	}
	p := ofBatch.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	if s := p.Status.SubmissionOf(v1alpha1.StagePre); s.Resumptions != 1 || len(s.EarlierNodes) != 1 {
		t.Errorf("the start of the batch is %+v, want one repetition", s)
	}
}
