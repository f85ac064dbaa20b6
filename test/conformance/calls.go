package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/breakwater-dev/breakwater/altershield"
)

// The actions that checks send by themselves.
const (
	actionOpenOrder   = "submitChangeExecOrder"
	actionStartBatch  = "submitChangeExecBatchStartNotify"
	actionRetrieve    = "retrieveChangeCheck"
	actionFinishOrder = "finishChangeExecOrderAction"
)

// callChecks are about orders, and about what every call has in common.
func callChecks() []check {
	return []check{
		{"an order is opened", required, opensAnOrder},
		{"an order that is opened twice is one order", required, opensItOnce},
		{"an order that exists is answered with 106", published, answers106},
		{"an order id may have 128 bytes", required, takesALongID},
		{"a field that the judge does not know is ignored", required, ignoresUnknownFields},
		{"a call with a wrong signature is refused with 102", required, refusesAForgery},
		{"a call of an unknown platform is refused with 102", required, refusesAStranger},
		{"a call without a signature is refused with 102", required, refusesUnsigned},
	}
}

func opensAnOrder(ctx context.Context, s *side) error {
	answer, err := s.client.OpenOrder(ctx, s.orderOf(s.order))
	if err != nil {
		return err
	}
	if answer.Existed {
		return fmt.Errorf("the order %s is new and was answered with 106", s.order)
	}
	s.opened = true
	if answer.OrderID == "" {
		return errors.New("the answer's domain has no orderId")
	}
	return nil
}

func (s *side) orderOf(id string) altershield.OpenOrder {
	return altershield.OpenOrder{
		OrderID: id, Title: "conformance of a judge", Apps: []string{"conformance"},
		Contents: []altershield.Content{{Type: "Deployment", Name: "default/conformance"}},
		Params:   map[string]string{"why": "the judge is being tried"},
	}
}

func opensItOnce(ctx context.Context, s *side) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	_, err := s.client.OpenOrder(ctx, s.orderOf(s.order))
	return err
}

func answers106(ctx context.Context, s *side) error {
	e, err := s.again(ctx, actionOpenOrder, nil, s.sign)
	if err != nil {
		return err
	}
	return e.refusedWith(altershield.CodeExists)
}

func takesALongID(ctx context.Context, s *side) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	_, err := s.client.OpenOrder(ctx, s.orderOf(padded(s.order+"/long-", 128)))
	return err
}

func ignoresUnknownFields(ctx context.Context, s *side) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{
		"bizExecOrderId": s.order + "/unknown-field", "breakwaterConformance": map[string]int{"a": 1},
	}, s.sign)
	if err != nil {
		return err
	}
	return e.accepted()
}

func refusesAForgery(ctx context.Context, s *side) error {
	return s.refusesSignature(ctx, s.signWith(s.config.Platform, s.config.Token+"-not"))
}

func refusesAStranger(ctx context.Context, s *side) error {
	return s.refusesSignature(ctx, s.signWith("not-"+s.config.Platform, s.config.Token))
}

func refusesUnsigned(ctx context.Context, s *side) error {
	return s.refusesSignature(ctx, func(http.Header, []byte) {})
}

func (s *side) refusesSignature(ctx context.Context, sign func(http.Header, []byte)) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": s.order + "/forged"}, sign)
	if err != nil {
		return err
	}
	return e.refusedWith(altershield.CodeSignature)
}

// padded returns s, made n bytes long.
func padded(s string, n int) string {
	for len(s) < n {
		s += "x"
	}
	return s[:n]
}
