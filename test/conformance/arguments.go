package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/breakwater-dev/breakwater/altershield"
)

// argumentChecks are about what a judge reads, and what it refuses.
func argumentChecks() []check {
	return []check{
		{"a batch of an unknown order is refused", required, refusesAnUnknownOrder},
		{"arguments are checked before the signature", published, checksArgumentsFirst},
		{"an order id of 129 bytes is refused with 101", published, refusesALongerID},
		{"a creator of 57 bytes is refused with 901", published, refusesALongCreator},
		{"a batch without its number is refused with 101", published, refusesABatchWithoutNumber},
		{"a batch without its totals is refused with 101", published, refusesABatchWithoutTotals},
		{"the signature is over the body without line ends", published, stripsLineEnds},
		{"a body that is not JSON is HTTP 400", published, refusesGarbage},
		{"an unknown stage is HTTP 400", published, refusesAnUnknownStage},
	}
}

func refusesAnUnknownOrder(ctx context.Context, s *side) error {
	e, err := s.again(ctx, actionStartBatch, map[string]any{"bizExecOrderId": s.order + "/never-opened"}, s.sign)
	if err != nil {
		return err
	}
	answer, err := e.envelope()
	if err == nil && answer.success {
		return errors.New("a batch of an order that was never opened was started")
	}
	return err
}

func checksArgumentsFirst(ctx context.Context, s *side) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": nil}, s.signWith(s.config.Platform, s.config.Token+"-not"))
	if err != nil {
		return err
	}
	return e.refusedWith(altershield.CodeArgument)
}

func refusesALongerID(ctx context.Context, s *side) error {
	return s.refuses(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": padded(s.order+"/", 129)}, altershield.CodeArgument)
}

func refusesALongCreator(ctx context.Context, s *side) error {
	return s.refuses(ctx, actionOpenOrder, map[string]any{
		"bizExecOrderId": s.order + "/creator", "creator": padded("c", 57),
	}, altershield.CodeInternal)
}

func refusesABatchWithoutNumber(ctx context.Context, s *side) error {
	return s.refuses(ctx, actionStartBatch, map[string]any{"batchNo": nil}, altershield.CodeArgument)
}

func refusesABatchWithoutTotals(ctx context.Context, s *side) error {
	for _, field := range []string{"totalBatchNum", "totalBatchNumInChangePhase"} {
		if err := s.refuses(ctx, actionStartBatch, map[string]any{field: nil}, altershield.CodeArgument); err != nil {
			return fmt.Errorf("without %s: %w", field, err)
		}
	}
	return nil
}

func (s *side) refuses(ctx context.Context, action string, fields map[string]any, code string) error {
	e, err := s.again(ctx, action, fields, s.sign)
	if err != nil {
		return err
	}
	return e.refusedWith(code)
}

func stripsLineEnds(ctx context.Context, s *side) error {
	good, err := s.wire.last(actionOpenOrder)
	if err != nil {
		return err
	}
	body, err := good.edited(map[string]any{"bizExecOrderId": s.order + "/lines"})
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		return err
	}
	lines := bytes.ReplaceAll(pretty.Bytes(), []byte("\n"), []byte("\r\n"))
	e, err := s.send(ctx, actionOpenOrder, lines, s.sign)
	if err != nil {
		return err
	}
	return e.accepted()
}

func refusesGarbage(ctx context.Context, s *side) error {
	return s.isBadRequest(ctx, actionOpenOrder, []byte(`{"tenantCode":`))
}

func refusesAnUnknownStage(ctx context.Context, s *side) error {
	good, err := s.wire.last(actionRetrieve)
	if err != nil {
		return err
	}
	body, err := good.edited(map[string]any{"defenseStage": "SOMETIME"})
	if err != nil {
		return err
	}
	return s.isBadRequest(ctx, actionRetrieve, body)
}

func (s *side) isBadRequest(ctx context.Context, action string, body []byte) error {
	e, err := s.send(ctx, action, body, s.sign)
	if err != nil {
		return err
	}
	if e.status != http.StatusBadRequest {
		return fmt.Errorf("%s was answered with HTTP %d: %s", action, e.status, head(e.answer))
	}
	return nil
}
