package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/functions/callback"
)

// callbackChecks examine every callback.
func callbackChecks() []check {
	return []check{
		{"a callback is signed with the platform's token", required, eachCallback(isSigned)},
		{"a callback's timestamp is the time of sending", required, eachCallback(isTimely)},
		{"a callback's content type is JSON", published, eachCallback(hasJSONContentType)},
		{"a callback can be parsed", required, eachCallback(isReadable)},
		{"a callback has the order, node and stage of a call", required, eachVerdict(namesARequestedCheck)},
		{"a callback has the check type of its node", required, eachVerdict(hasCheckType)},
		{"a callback's checkPass agrees with its verdict", required, eachCallback(checkPassAgrees)},
		{"a verdict names only pods of its batch", required, eachVerdict(namesPodsOfTheBatch)},
	}
}

// eachCallback applies a check to every callback, trusted or not.
func eachCallback(look func(arrival) error) func(context.Context, *suite) error {
	return func(_ context.Context, s *suite) error {
		callbacks := s.callbacks.arrivals()
		if len(callbacks) == 0 {
			return skip("no callback arrived")
		}
		for _, a := range callbacks {
			if err := look(a); err != nil {
				return fmt.Errorf("%w; the callback: %s", err, head(a.body))
			}
		}
		return nil
	}
}

// eachVerdict applies a check to every verdict that can be parsed. It ignores
// verdicts of other orders.
func eachVerdict(look func(*suite, time.Time, callback.Received) error) func(context.Context, *suite) error {
	return func(_ context.Context, s *suite) error {
		found := false
		for _, a := range s.callbacks.arrivals() {
			for _, r := range a.received {
				if !strings.HasPrefix(r.Data.BizExecOrderID, s.order) && s.requestedChecksOf(r.Data.NodeID) == nil {
					continue
				}
				found = true
				if err := look(s, a.at, r); err != nil {
					return err
				}
			}
		}
		if !found {
			return skip("no callback could be parsed")
		}
		return nil
	}
}

func isSigned(a arrival) error {
	if auth, ok := errors.AsType[*altershield.AuthError](a.auth); ok && auth.Reason != altershield.AuthSkew {
		return auth
	}
	return nil
}

func isTimely(a arrival) error {
	if auth, ok := errors.AsType[*altershield.AuthError](a.auth); ok && auth.Reason == altershield.AuthSkew {
		return auth
	}
	return nil
}

// hasJSONContentType checks loosely, because the published server's
// `application/json;UTF-8` is not a valid media type. Breakwater uses the
// header only to recognize CloudEvents.
func hasJSONContentType(a arrival) error {
	if is := strings.ToLower(a.header.Get("Content-Type")); !strings.HasPrefix(is, "application/") || !strings.Contains(is, "json") {
		return fmt.Errorf("the content type is %q", is)
	}
	return nil
}

func isReadable(a arrival) error { return a.unreadable }

// requestedChecksOf returns the requested checks of a node.
func (s *suite) requestedChecksOf(node string) []*requestedCheck {
	var out []*requestedCheck
	for _, a := range s.requested {
		if a.node == node {
			out = append(out, a)
		}
	}
	return out
}

func namesARequestedCheck(s *suite, at time.Time, r callback.Received) error {
	nodes := s.requestedChecksOf(r.Data.NodeID)
	if r.Data.BizExecOrderID != s.order {
		return fmt.Errorf("the callback of node %s has order %s, want %s", r.Data.NodeID, r.Data.BizExecOrderID, s.order)
	}
	if len(nodes) == 0 {
		if s.lostStart() {
			return nil // the lost answer may have had this node
		}
		return fmt.Errorf("no answer to a start has node %s of order %s, but a callback has it", r.Data.NodeID, r.Data.BizExecOrderID)
	}
	for _, a := range nodes {
		if a.stage == r.Data.Stage && !at.Before(a.since) {
			return nil
		}
	}
	return fmt.Errorf("a callback of %s has stage %s, which was not requested", r.Data.NodeID, r.Data.Stage)
}

// lostStart reports whether a start got no usable answer.
func (s *suite) lostStart() bool {
	return slices.ContainsFunc(s.wire.all(), func(e exchange) bool {
		_, err := e.envelope()
		return strings.HasSuffix(e.action, "StartNotify") && (e.err != nil || e.status != http.StatusOK || err != nil)
	})
}

// hasCheckType checks JSON only: Breakwater handles verdicts of orders and
// batches differently, and a CloudEvent has no check type.
func hasCheckType(s *suite, _ time.Time, r callback.Received) error {
	if r.Form != "json" {
		return nil
	}
	for _, a := range s.requestedChecksOf(r.Data.NodeID) {
		if (a.kind == altershield.CheckOrder) != (r.Check == altershield.CheckOrder) {
			return fmt.Errorf("the callback of %s has changeCheckType %q", a.name, r.Check)
		}
	}
	return nil
}

// checkPassAgrees compares two fields. If they differ, Breakwater uses the
// verdict.
func checkPassAgrees(a arrival) error {
	if len(a.received) != 1 || a.received[0].Form != "json" {
		return nil
	}
	received, err := altershield.ParseCallback(a.body)
	if err != nil {
		return nil //nolint:nilerr // another check reports that it cannot be parsed
	}
	if pass := counts(received.Verdict) == "Pass"; pass != received.CheckPass {
		return fmt.Errorf("the verdict is %q and checkPass is %t", received.Verdict, received.CheckPass)
	}
	return nil
}

func namesPodsOfTheBatch(s *suite, _ time.Time, r callback.Received) error {
	for _, b := range s.batches {
		if b.node != r.Data.NodeID {
			continue
		}
		for _, p := range r.Data.PodResults {
			if !b.has(p.Pod) {
				return fmt.Errorf("the callback of %s has pod %q, which is not one of %v", b.name, p.Pod, b.pods)
			}
		}
	}
	return nil
}
