package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// nodeChecks check order nodes in states that a normal release does not reach.
func nodeChecks() []check {
	return []check{
		{"every start creates a new node", published, createsANewNode},
		{"a finish before the PRE verdict is rejected with 103", published, rejectsAnEarlyFinish},
		{"a second finish is accepted", published, acceptsASecondFinish},
		{"the finish of an unknown node is rejected", required, rejectsFinishOfAnUnknownNode},
		{"retrieve of an unknown node is rejected", required, rejectsRetrieveOfAnUnknownNode},
		{"an order is closed", published, closesTheOrder},
		{"a number may be a string", published, readsNumbers},
		{"recording an event twice is not an error", required, recordsAnEvent},
	}
}

func createsANewNode(ctx context.Context, s *suite) error {
	if len(s.batches) == 0 {
		return skip("no batch was started")
	}
	since := time.Now()
	answer, err := s.client.StartBatch(ctx, s.batchOf(1, []string{"conformance-c"}))
	if err != nil {
		return err
	}
	s.requested = append(s.requested, &requestedCheck{
		name: "batch 1 PRE, once more", kind: altershield.CheckBatch, node: answer.NodeID, stage: v1alpha1.StagePre, since: since, skipped: answer.SkipCheck,
	})
	for _, b := range s.batches {
		if b.node == answer.NodeID {
			return fmt.Errorf("two starts were answered with node %s", answer.NodeID)
		}
	}
	return nil
}

// rejectsAnEarlyFinish finishes the node of the previous start. Only a pass after
// the finish proves that the check was still running.
func rejectsAnEarlyFinish(ctx context.Context, s *suite) error {
	if len(s.requested) == 0 {
		return skip("no batch was started")
	}
	node := s.requested[len(s.requested)-1].node
	inconclusive := skip("the check ended before the finish, or it did not pass")
	if s.passed(ctx, node, v1alpha1.StagePre) {
		return inconclusive
	}
	since := time.Now()
	_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: node})
	switch {
	case altershield.IsState(err):
		return nil
	case err != nil:
		return err
	}
	s.requested = append(s.requested, &requestedCheck{name: "batch 1 POST, again", kind: altershield.CheckBatch, node: node, stage: v1alpha1.StagePost, since: since})
	if s.passed(ctx, node, v1alpha1.StagePre) || !s.callbacks.await(ctx, node, v1alpha1.StagePre, s.wait) {
		return inconclusive
	}
	if received := s.callbacks.trusted(node, v1alpha1.StagePre)[0]; received.WithoutRules || counts(received.Data.Verdict) != v1alpha1.OutcomePass {
		return inconclusive
	}
	return errors.New("the finish was accepted while the check was running")
}

func acceptsASecondFinish(ctx context.Context, s *suite) error {
	for _, a := range s.requested {
		if a.stage != v1alpha1.StagePost || !a.calledBack {
			continue
		}
		_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: a.node})
		return err
	}
	return skip("no finish was followed by a callback")
}

func rejectsFinishOfAnUnknownNode(ctx context.Context, s *suite) error {
	_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: "no-such-node"})
	return wantRejection(err)
}

func rejectsRetrieveOfAnUnknownNode(ctx context.Context, s *suite) error {
	_, err := s.client.Retrieve(ctx, altershield.Retrieve{OrderID: s.order, NodeID: "no-such-node", Stage: v1alpha1.StagePre})
	return wantRejection(err)
}

func wantRejection(err error) error {
	switch {
	case err == nil:
		return errors.New("the finish was accepted")
	case errors.As(err, new(*altershield.ResultError)):
		return nil
	default:
		return err
	}
}

func closesTheOrder(ctx context.Context, s *suite) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	return s.client.CloseOrder(ctx, altershield.CloseOrder{OrderID: s.order, State: altershield.CloseSuccess})
}

func readsNumbers(ctx context.Context, s *suite) error {
	e, err := s.again(ctx, actionFinishOrder, map[string]any{"finishTime": "1700000000000"}, s.sign)
	if err != nil {
		return err
	}
	return e.accepted()
}

func recordsAnEvent(ctx context.Context, s *suite) error {
	event := altershield.SubmitEvent{
		OrderID: altershield.EventOrderID(s.order, "conformance"), Title: "conformance", Apps: []string{"conformance"},
	}
	for range 2 {
		if _, err := s.client.SubmitEvent(ctx, event); err != nil {
			return err
		}
	}
	return nil
}
