package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/functions/verdict"
)

// batch is a batch, with the ChangePod that Breakwater would have of it.
type batch struct {
	name string
	node string
	pods []string
	pod  *v1alpha1.ChangePod
	// heard is how many verdicts of a stage were applied.
	heard map[v1alpha1.Stage]int
}

func newBatch(no int32, node string, pods []string) *batch {
	p := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{UID: "batch"}, Spec: v1alpha1.ChangePodSpec{BatchNo: no}}
	for _, name := range pods {
		p.Spec.PodInfos = append(p.Spec.PodInfos, v1alpha1.PodSummary{Pod: name})
	}
	p.Status.ChangePodID = node
	return &batch{name: fmt.Sprintf("batch %d", no), node: node, pods: pods, pod: p, heard: map[v1alpha1.Stage]int{}}
}

// hear applies what is believed of a stage and was not heard before, as
// function verdict does. It asks where nothing came.
func (b *batch) hear(ctx context.Context, s *side, stage v1alpha1.Stage) {
	said := s.came.believed(b.node, stage)
	for _, r := range said[b.heard[stage]:] {
		b.apply(ctx, s, r)
	}
	b.heard[stage] = len(said)
	if len(said) == 0 && s.passed(ctx, b.node, stage) {
		b.apply(ctx, s, callback.Received{Data: events.ExternalVerdict{NodeID: b.node, Stage: stage, Verdict: "pass"}})
	}
}

// apply asks where nobody stands behind a pass.
func (b *batch) apply(ctx context.Context, s *side, r callback.Received) {
	in := verdict.Input{Pod: b.pod, Now: time.Now(), Received: events.ChangePodVerdict{
		UID: b.pod.UID, NodeID: r.Data.NodeID, Stage: r.Data.Stage, Verdict: r.Data.Verdict, Unjudged: r.Unjudged,
		Message: r.Data.Message, PodResults: r.Data.PodResults,
	}}
	d := verdict.Decide(in)
	if d.Outcome == verdict.AskRetrieve {
		in.Asked, in.Confirmed = true, s.passed(ctx, b.node, r.Data.Stage)
		d = verdict.Decide(in)
	}
	b.pod.Status.Verdicts, b.pod.Status.PodResults = d.Verdicts, d.PodResults
}

func (b *batch) failedPre() bool {
	v := b.pod.Status.VerdictOf(v1alpha1.StagePre)
	return v != nil && v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomeFail
}

// outcomes says what the batch counts as, pod by pod, when its deadlines have
// passed.
func (b *batch) outcomes() []podOutcome {
	ended := b.pod.DeepCopy()
	ended.Status.Phase = v1alpha1.PodExecuteDone
	var out []podOutcome
	for _, name := range b.pods {
		o, message := ended.OutcomeOf(name)
		out = append(out, podOutcome{pod: name, outcome: o, message: message})
	}
	return out
}

// podOutcome is what the verdicts count as for one pod.
type podOutcome struct {
	pod     string
	outcome v1alpha1.Outcome
	message string
}

func (b *batch) has(pod string) bool { return slices.Contains(b.pods, pod) }
