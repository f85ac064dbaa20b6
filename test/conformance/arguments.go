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

// argumentChecks are about the arguments that a server accepts and rejects.
func argumentChecks() []check {
	return []check{
		{"a batch of an unknown order is rejected", required, rejectsAnUnknownOrder},
		{"arguments are checked before the signature", published, checksArgumentsFirst},
		{"an order id of 129 bytes is rejected with 101", published, rejectsALongerID},
		{"a creator of 57 bytes is rejected with 901", published, rejectsALongCreator},
		{"a batch without its number is rejected with 101", published, rejectsABatchWithoutNumber},
		{"a batch without its totals is rejected with 101", published, rejectsABatchWithoutTotals},
		{"the signature is over the body without line ends", published, ignoresLineEnds},
		{"a body that is not JSON is answered with HTTP 400", published, rejectsInvalidJSON},
		{"an unknown stage is answered with HTTP 400", published, rejectsAnUnknownStage},
	}
}

func rejectsAnUnknownOrder(ctx context.Context, s *suite) error {
	e, err := s.again(ctx, actionStartBatch, map[string]any{"bizExecOrderId": s.order + "/never-opened"}, s.sign)
	if err != nil {
		return err
	}
	answer, err := e.envelope()
	if err == nil && answer.success {
		return errors.New("the start of a batch was accepted although its order was never opened")
	}
	return err
}

func checksArgumentsFirst(ctx context.Context, s *suite) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": nil}, s.signWith(s.config.Platform, s.config.Token+"-not"))
	if err != nil {
		return err
	}
	return e.rejectedWith(altershield.CodeArgument)
}

func rejectsALongerID(ctx context.Context, s *suite) error {
	return s.rejects(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": padded(s.order+"/", 129)}, altershield.CodeArgument)
}

func rejectsALongCreator(ctx context.Context, s *suite) error {
	return s.rejects(ctx, actionOpenOrder, map[string]any{
		"bizExecOrderId": s.order + "/creator", "creator": padded("c", 57),
	}, altershield.CodeInternal)
}

func rejectsABatchWithoutNumber(ctx context.Context, s *suite) error {
	return s.rejects(ctx, actionStartBatch, map[string]any{"batchNo": nil}, altershield.CodeArgument)
}

func rejectsABatchWithoutTotals(ctx context.Context, s *suite) error {
	for _, field := range []string{"totalBatchNum", "totalBatchNumInChangePhase"} {
		if err := s.rejects(ctx, actionStartBatch, map[string]any{field: nil}, altershield.CodeArgument); err != nil {
			return fmt.Errorf("without %s: %w", field, err)
		}
	}
	return nil
}

func (s *suite) rejects(ctx context.Context, action string, fields map[string]any, code string) error {
	e, err := s.again(ctx, action, fields, s.sign)
	if err != nil {
		return err
	}
	return e.rejectedWith(code)
}

func ignoresLineEnds(ctx context.Context, s *suite) error {
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

func rejectsInvalidJSON(ctx context.Context, s *suite) error {
	return s.isBadRequest(ctx, actionOpenOrder, []byte(`{"tenantCode":`))
}

func rejectsAnUnknownStage(ctx context.Context, s *suite) error {
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

func (s *suite) isBadRequest(ctx context.Context, action string, body []byte) error {
	e, err := s.send(ctx, action, body, s.sign)
	if err != nil {
		return err
	}
	if e.status != http.StatusBadRequest {
		return fmt.Errorf("%s was answered with HTTP %d: %s", action, e.status, head(e.answer))
	}
	return nil
}
