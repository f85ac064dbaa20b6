package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// releaseChecks run a release of two batches.
func releaseChecks() []check {
	return []check{
		{"the start of an order is answered with a node and followed by a callback", required, startsTheOrder},
		{"the start of a batch is answered with a node and followed by a callback", required, startsBatches},
		{"retrieve does not return pass for a check that was not requested", required, passesOnlyRequestedChecks},
		{"the finish of a batch is accepted and followed by a callback", required, finishesBatches},
		{"the finish of an order is accepted and followed by a callback", required, finishesTheNode},
	}
}

// nameOfOrder is the name of the order check in the report.
const nameOfOrder = "order"

func startsTheOrder(ctx context.Context, s *suite) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	since := time.Now()
	answer, err := start(func() (altershield.StartAnswer, error) {
		return s.client.StartOrder(ctx, altershield.StartOrder{OrderID: s.order})
	})
	if err != nil {
		return err
	}
	return s.expect(ctx, &requestedCheck{
		name: nameOfOrder + " PRE", kind: altershield.CheckOrder, node: answer.NodeID, stage: v1alpha1.StagePre, since: since, skipped: answer.SkipCheck,
	})
}

func startsBatches(ctx context.Context, s *suite) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	var wrong []error
	for i, pods := range [][]string{{"conformance-a", "conformance-b"}, {"conformance-c"}} {
		no := int32(i) //nolint:gosec // 0 or 1
		since := time.Now()
		answer, err := start(func() (altershield.StartAnswer, error) { return s.client.StartBatch(ctx, s.batchOf(no, pods)) })
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		b := newBatch(no, answer.NodeID, pods)
		s.batches = append(s.batches, b)
		wrong = append(wrong, s.expect(ctx, &requestedCheck{
			name: b.name + " PRE", kind: altershield.CheckBatch, node: answer.NodeID, stage: v1alpha1.StagePre, since: since, skipped: answer.SkipCheck,
		}))
		b.applyNew(ctx, s, v1alpha1.StagePre)
	}
	return errors.Join(wrong...)
}

func (s *suite) batchOf(no int32, pods []string) altershield.StartBatch {
	return altershield.StartBatch{
		OrderID: s.order, BatchNo: no, TotalBatches: 2, Last: no == 1,
		Info: altershield.BatchInfo{
			Namespace: "default", WorkloadType: "Deployment", WorkloadName: "conformance", Pods: pods, Revision: "1",
		},
	}
}

// passesOnlyRequestedChecks matters after a lost answer to a finish: Breakwater
// calls retrieve and would use the pass as a verdict.
func passesOnlyRequestedChecks(ctx context.Context, s *suite) error {
	if len(s.batches) == 0 {
		return skip("no batch was started")
	}
	for _, b := range s.batches {
		if s.passed(ctx, b.node, v1alpha1.StagePost) {
			return fmt.Errorf("retrieve returns pass for POST of %s before its finish", b.name)
		}
	}
	return nil
}

func finishesBatches(ctx context.Context, s *suite) error {
	var wrong []error
	tried := false
	for _, b := range s.batches {
		if b.failedPre() {
			continue // Breakwater does not finish a failed batch
		}
		tried = true
		since := time.Now()
		if err := s.finish(ctx, b.node, b.pods); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", b.name, err))
			continue
		}
		wrong = append(wrong, s.expect(ctx, &requestedCheck{name: b.name + " POST", kind: altershield.CheckBatch, node: b.node, stage: v1alpha1.StagePost, since: since}))
		b.applyNew(ctx, s, v1alpha1.StagePost)
	}
	if !tried {
		return skip("no batch passed PRE")
	}
	return errors.Join(wrong...)
}

func finishesTheNode(ctx context.Context, s *suite) error {
	for _, a := range s.requested {
		if a.kind != altershield.CheckOrder || a.stage != v1alpha1.StagePre {
			continue
		}
		since := time.Now()
		if err := s.finish(ctx, a.node, nil); err != nil {
			return err
		}
		return s.expect(ctx, &requestedCheck{name: nameOfOrder + " POST", kind: altershield.CheckOrder, node: a.node, stage: v1alpha1.StagePost, since: since})
	}
	return skip("no order node was created")
}
