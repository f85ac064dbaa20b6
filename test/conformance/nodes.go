package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// nodeChecks are about nodes beside the way of a release.
func nodeChecks() []check {
	return []check{
		{"every start makes a node of its own", published, makesANodeEach},
		{"a finish before the PRE verdict is refused with 103", published, refusesAnEarlyFinish},
		{"a second finish is taken", published, takesASecondFinish},
		{"the finish of an unknown node is refused", required, refusesToFinishAStranger},
		{"nothing is known of an unknown node", required, knowsNoStranger},
		{"an order is closed", published, closesTheOrder},
		{"a number may be a string", published, readsNumbers},
		{"an event is recorded, and recorded again without an error", required, recordsAnEvent},
	}
}

func makesANodeEach(ctx context.Context, s *side) error {
	if len(s.batches) == 0 {
		return skip("no batch was started")
	}
	since := time.Now()
	answer, err := s.client.StartBatch(ctx, s.batchOf(1, []string{"conformance-c"}))
	if err != nil {
		return err
	}
	s.asked = append(s.asked, &asked{
		what: "batch 1 PRE, once more", kind: altershield.CheckBatch, node: answer.NodeID, stage: v1alpha1.StagePre, since: since, skipped: answer.SkipCheck,
	})
	for _, b := range s.batches {
		if b.node == answer.NodeID {
			return fmt.Errorf("node %s was given to two starts", answer.NodeID)
		}
	}
	return nil
}

// refusesAnEarlyFinish uses the node of the start before it. Whether the check
// was still running can be told only of one that passes, and afterwards.
func refusesAnEarlyFinish(ctx context.Context, s *side) error {
	if len(s.asked) == 0 {
		return skip("no batch was started")
	}
	node := s.asked[len(s.asked)-1].node
	faster := skip("the judge was faster than the finish, or its check did not pass")
	if s.passed(ctx, node, v1alpha1.StagePre) {
		return faster
	}
	since := time.Now()
	_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: node})
	switch {
	case altershield.IsState(err):
		return nil
	case err != nil:
		return err
	}
	s.asked = append(s.asked, &asked{what: "batch 1 POST, again", kind: altershield.CheckBatch, node: node, stage: v1alpha1.StagePost, since: since})
	if s.passed(ctx, node, v1alpha1.StagePre) || !s.came.await(ctx, node, v1alpha1.StagePre, s.wait) {
		return faster
	}
	if said := s.came.believed(node, v1alpha1.StagePre)[0]; said.Unjudged || counts(said.Data.Verdict) != v1alpha1.OutcomePass {
		return faster
	}
	return errors.New("it was taken while the check was running")
}

func takesASecondFinish(ctx context.Context, s *side) error {
	for _, a := range s.asked {
		if a.stage != v1alpha1.StagePost || !a.called {
			continue
		}
		_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: a.node})
		return err
	}
	return skip("no finish was called back")
}

func refusesToFinishAStranger(ctx context.Context, s *side) error {
	_, err := s.client.Finish(ctx, altershield.Finish{OrderID: s.order, NodeID: "no-such-node"})
	return wantRefusal(err)
}

func knowsNoStranger(ctx context.Context, s *side) error {
	_, err := s.client.Retrieve(ctx, altershield.Retrieve{OrderID: s.order, NodeID: "no-such-node", Stage: v1alpha1.StagePre})
	return wantRefusal(err)
}

func wantRefusal(err error) error {
	var refusal *altershield.ResultError
	switch {
	case err == nil:
		return errors.New("it was taken")
	case errors.As(err, &refusal):
		return nil
	default:
		return err
	}
}

func closesTheOrder(ctx context.Context, s *side) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	return s.client.FinishOrder(ctx, altershield.FinishOrder{OrderID: s.order, State: altershield.FinishSuccess})
}

func readsNumbers(ctx context.Context, s *side) error {
	e, err := s.again(ctx, actionFinishOrder, map[string]any{"finishTime": "1700000000000"}, s.sign)
	if err != nil {
		return err
	}
	return e.accepted()
}

func recordsAnEvent(ctx context.Context, s *side) error {
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
