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

// batch is a batch with the ChangePod that Breakwater would create for it.
type batch struct {
	name string
	node string
	pods []string
	pod  *v1alpha1.ChangePod
	// applied is the number of applied verdicts by stage.
	applied map[v1alpha1.Stage]int
}

func newBatch(no int32, node string, pods []string) *batch {
	p := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{UID: "batch"}, Spec: v1alpha1.ChangePodSpec{BatchNo: no}}
	for _, name := range pods {
		p.Spec.PodInfos = append(p.Spec.PodInfos, v1alpha1.PodSummary{Pod: name})
	}
	p.Status.ChangePodID = node
	return &batch{name: fmt.Sprintf("batch %d", no), node: node, pods: pods, pod: p, applied: map[v1alpha1.Stage]int{}}
}

// applyNew applies the new trusted verdicts of a stage, as function verdict
// does. If there is no verdict at all, it calls retrieve.
func (b *batch) applyNew(ctx context.Context, s *suite, stage v1alpha1.Stage) {
	received := s.callbacks.trusted(b.node, stage)
	for _, r := range received[b.applied[stage]:] {
		b.apply(ctx, s, r)
	}
	b.applied[stage] = len(received)
	if len(received) == 0 && s.passed(ctx, b.node, stage) {
		b.apply(ctx, s, callback.Received{Data: events.ExternalVerdict{NodeID: b.node, Stage: stage, Verdict: "pass"}})
	}
}

// apply applies one verdict. A pass without rules is confirmed with retrieve first.
func (b *batch) apply(ctx context.Context, s *suite, r callback.Received) {
	in := verdict.Input{Batch: b.pod, Now: time.Now(), Received: events.ChangePodVerdict{
		UID: b.pod.UID, NodeID: r.Data.NodeID, Stage: r.Data.Stage, Verdict: r.Data.Verdict, WithoutRules: r.WithoutRules,
		Message: r.Data.Message, PodResults: r.Data.PodResults,
	}}
	d := verdict.Decide(in)
	if d.Action == verdict.AskRetrieve {
		in.Retrieved = verdict.RetrievedOther
		if s.confirms(ctx, b.node, r.Data.Stage) {
			in.Retrieved = verdict.RetrievedPass
		}
		d = verdict.Decide(in)
	}
	b.pod.Status.Verdicts, b.pod.Status.PodResults = d.Verdicts, d.PodResults
}

func (b *batch) failedPre() bool {
	v := b.pod.Status.VerdictOf(v1alpha1.StagePre)
	return v != nil && v1alpha1.ParseVerdict(v.Verdict) == v1alpha1.OutcomeFail
}

// outcomes returns the outcome of each pod after the deadlines of the batch.
func (b *batch) outcomes() []podOutcome {
	ended := b.pod.DeepCopy()
	ended.Status.Phase = v1alpha1.BatchExecuteDone
	var out []podOutcome
	for _, name := range b.pods {
		o, message := ended.OutcomeOf(name)
		out = append(out, podOutcome{pod: name, outcome: o, message: message})
	}
	return out
}

// podOutcome is the outcome of one pod.
type podOutcome struct {
	pod     string
	outcome v1alpha1.Outcome
	message string
}

func (b *batch) has(pod string) bool { return slices.Contains(b.pods, pod) }
