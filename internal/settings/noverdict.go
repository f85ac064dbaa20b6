package settings

import (
	"cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// UnjudgedBatch returns the outcome of an unjudged batch: the strictest policy of its
// stages without a pass or fail, or of both stages if each has one. If the batch has
// judges other than the server, only the judges that must answer count.
func (s Settings) UnjudgedBatch(c *v1alpha1.ChangePod) v1alpha1.NoVerdictPolicy {
	if len(c.Spec.Judges) > 0 {
		return s.unjudgedByJudges(c)
	}
	unjudged := c.UnjudgedStages()
	if len(unjudged) == 0 {
		return s.BatchNoVerdict()
	}
	strictest := v1alpha1.NoVerdictPass
	for _, stage := range unjudged {
		strictest = stricter(strictest, s.UnjudgedStage(stage, c.Status.VerdictOf(stage)))
	}
	return strictest
}

// unjudgedByJudges is UnjudgedBatch for a batch with judges other than the server.
func (s Settings) unjudgedByJudges(c *v1alpha1.ChangePod) v1alpha1.NoVerdictPolicy {
	strictest := v1alpha1.NoVerdictPass
	for _, j := range c.UnjudgedBy() {
		strictest = stricter(strictest, s.UnjudgedBy(j))
	}
	if c.ServerMustAnswer() && c.Status.VerdictOf(v1alpha1.StagePost).Outcome() != v1alpha1.OutcomePass {
		for _, stage := range c.UnjudgedStages() {
			strictest = stricter(strictest, s.UnjudgedStage(stage, c.Status.VerdictOf(stage)))
		}
	}
	return strictest
}

// UnjudgedBy returns the outcome of a batch without a verdict of a judge other than the
// server.
func (s Settings) UnjudgedBy(j v1alpha1.Judge) v1alpha1.NoVerdictPolicy {
	return cmp.Or(j.NoVerdict, s.BatchNoVerdict(v1alpha1.StagePost))
}

// UnjudgedStage returns the outcome of an unjudged stage of a batch. v is the verdict
// that is stored for the stage, or nil; a contradicted pass has a policy of its own.
func (s Settings) UnjudgedStage(stage v1alpha1.Stage, v *v1alpha1.StageVerdict) v1alpha1.NoVerdictPolicy {
	if v.IsContradicted() {
		return s.NoVerdictContradicted
	}
	return s.BatchNoVerdict(stage)
}

// UnjudgedOrder returns the outcome of a release whose order as a whole is unjudged.
func (s Settings) UnjudgedOrder(c *v1alpha1.ChangeWorkload) v1alpha1.NoVerdictPolicy {
	if c.Status.OrderContradicted() {
		return s.NoVerdictContradicted
	}
	return s.OrderNoVerdict()
}

// BatchNoVerdict returns the outcome of a batch without any verdict of these stages:
// the strictest policy of them, or of both if no stage is given.
func (s Settings) BatchNoVerdict(stages ...v1alpha1.Stage) v1alpha1.NoVerdictPolicy {
	if len(stages) == 0 {
		stages = []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost}
	}
	of := map[v1alpha1.Stage]v1alpha1.NoVerdictPolicy{v1alpha1.StagePre: s.NoVerdictPre, v1alpha1.StagePost: s.NoVerdictPost}
	strictest := v1alpha1.NoVerdictPass
	for _, stage := range stages {
		strictest = stricter(strictest, cmp.Or(of[stage], s.NoVerdict))
	}
	return strictest
}

// OrderNoVerdict returns the outcome of a release whose order as a whole has no verdict.
func (s Settings) OrderNoVerdict() v1alpha1.NoVerdictPolicy {
	return cmp.Or(s.NoVerdictOrder, s.NoVerdict)
}

// ReleaseNoVerdict returns the outcome of a release whose order the server did
// not accept: neither the order nor any of its batches is judged.
func (s Settings) ReleaseNoVerdict() v1alpha1.NoVerdictPolicy {
	return stricter(s.BatchNoVerdict(), s.OrderNoVerdict())
}

func stricter(a, b v1alpha1.NoVerdictPolicy) v1alpha1.NoVerdictPolicy {
	for _, p := range []v1alpha1.NoVerdictPolicy{v1alpha1.NoVerdictFail, v1alpha1.NoVerdictHold} {
		if a == p || b == p {
			return p
		}
	}
	return v1alpha1.NoVerdictPass
}
