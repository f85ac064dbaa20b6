package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/breakwater-dev/breakwater/altershield"
)

// The actions that checks send without the client.
const (
	actionOpenOrder   = "submitChangeExecOrder"
	actionStartBatch  = "submitChangeExecBatchStartNotify"
	actionRetrieve    = "retrieveChangeCheck"
	actionFinishOrder = "finishChangeExecOrderAction"
)

// callChecks are about orders, and about properties of every call.
func callChecks() []check {
	return []check{
		{"an order is opened", required, opensAnOrder},
		{"opening an order twice results in one order", required, opensItOnce},
		{"opening an existing order is answered with 106", published, answers106},
		{"an order id may have 128 bytes", required, acceptsALongID},
		{"unknown fields are ignored", required, ignoresUnknownFields},
		{"a call with a wrong signature is rejected with 102", published, rejectsAWrongSignature},
		{"a call from an unknown platform is rejected with 102", published, rejectsAnUnknownPlatform},
		{"a call without a signature is rejected with 102", published, rejectsUnsigned},
	}
}

func opensAnOrder(ctx context.Context, s *suite) error {
	answer, err := s.client.OpenOrder(ctx, s.orderOf(s.order))
	if err != nil {
		return err
	}
	if answer.Existed {
		return fmt.Errorf("the new order %s was answered with 106", s.order)
	}
	s.opened = true
	if answer.OrderID == "" {
		return errors.New("the answer's domain has no orderId")
	}
	return nil
}

func (s *suite) orderOf(id string) altershield.OpenOrder {
	return altershield.OpenOrder{
		OrderID: id, Title: "conformance test of a server", Apps: []string{"conformance"},
		Contents: []altershield.Content{{Type: "Deployment", Name: "default/conformance"}},
		Params:   map[string]string{"why": "conformance test"},
	}
}

func opensItOnce(ctx context.Context, s *suite) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	_, err := s.client.OpenOrder(ctx, s.orderOf(s.order))
	return err
}

func answers106(ctx context.Context, s *suite) error {
	e, err := s.again(ctx, actionOpenOrder, nil, s.sign)
	if err != nil {
		return err
	}
	return e.rejectedWith(altershield.CodeExists)
}

func acceptsALongID(ctx context.Context, s *suite) error {
	if err := s.needOrder(); err != nil {
		return err
	}
	_, err := s.client.OpenOrder(ctx, s.orderOf(padded(s.order+"/long-", 128)))
	return err
}

func ignoresUnknownFields(ctx context.Context, s *suite) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{
		"bizExecOrderId": s.order + "/unknown-field", "breakwaterConformance": map[string]int{"a": 1},
	}, s.sign)
	if err != nil {
		return err
	}
	return e.accepted()
}

func rejectsAWrongSignature(ctx context.Context, s *suite) error {
	return s.rejectsSignature(ctx, "wrong", s.signWith(s.config.Platform, s.config.Token+"-not"))
}

func rejectsAnUnknownPlatform(ctx context.Context, s *suite) error {
	return s.rejectsSignature(ctx, "platform", s.signWith("not-"+s.config.Platform, s.config.Token))
}

func rejectsUnsigned(ctx context.Context, s *suite) error {
	return s.rejectsSignature(ctx, "unsigned", func(http.Header, []byte) {})
}

// rejectsSignature uses a new order for each check: a server that opens the order in one
// check would reject the same order in the next check for another reason.
func (s *suite) rejectsSignature(ctx context.Context, name string, sign func(http.Header, []byte)) error {
	e, err := s.again(ctx, actionOpenOrder, map[string]any{"bizExecOrderId": s.order + "/forged-" + name}, sign)
	if err != nil {
		return err
	}
	if e.accepted() == nil {
		return errors.New("the call was accepted: anyone who reaches the server can open orders. " +
			"The published server checks signatures if its table altershield_config has SKIP_OPEN_API_AUTH = false")
	}
	return e.rejectedWith(altershield.CodeSignature)
}

// padded returns s padded to n bytes.
func padded(s string, n int) string {
	for len(s) < n {
		s += "x"
	}
	return s[:n]
}
