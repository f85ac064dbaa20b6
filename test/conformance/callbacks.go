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

// callbackChecks look at every callback that came.
func callbackChecks() []check {
	return []check{
		{"a callback is signed with the platform's token", required, eachCallback(isSigned)},
		{"a callback's timestamp is that of its sending", required, eachCallback(isTimely)},
		{"a callback's content type says that it is JSON", published, eachCallback(saysJSON)},
		{"a callback can be read", required, eachCallback(isReadable)},
		{"a callback names an order, a node and a stage that were asked for", required, eachVerdict(namesWhatWasAsked)},
		{"a callback says whether an order or a batch was checked", required, eachVerdict(namesWhatWasChecked)},
		{"a callback's checkPass agrees with its verdict", required, eachCallback(agreesWithItself)},
		{"a verdict names only pods of its batch", required, eachVerdict(namesPodsOfTheBatch)},
	}
}

// eachCallback tries every callback, whatever it is worth.
func eachCallback(look func(arrival) error) func(context.Context, *side) error {
	return func(_ context.Context, s *side) error {
		came := s.came.arrivals()
		if len(came) == 0 {
			return skip("nothing was called back")
		}
		for _, a := range came {
			if err := look(a); err != nil {
				return fmt.Errorf("%w; the callback: %s", err, head(a.body))
			}
		}
		return nil
	}
}

// eachVerdict tries every verdict that can be read. Those of orders of others
// are nobody's business.
func eachVerdict(look func(*side, time.Time, callback.Received) error) func(context.Context, *side) error {
	return func(_ context.Context, s *side) error {
		found := false
		for _, a := range s.came.arrivals() {
			for _, r := range a.said {
				if !strings.HasPrefix(r.Data.BizExecOrderID, s.order) && s.askedFor(r.Data.NodeID) == nil {
					continue
				}
				found = true
				if err := look(s, a.at, r); err != nil {
					return err
				}
			}
		}
		if !found {
			return skip("no verdict was called back that can be read")
		}
		return nil
	}
}

func isSigned(a arrival) error {
	var auth *altershield.AuthError
	if errors.As(a.auth, &auth) && auth.Reason != altershield.AuthSkew {
		return auth
	}
	return nil
}

func isTimely(a arrival) error {
	var auth *altershield.AuthError
	if errors.As(a.auth, &auth) && auth.Reason == altershield.AuthSkew {
		return auth
	}
	return nil
}

// saysJSON: the published server's `application/json;UTF-8` is no media type,
// and Breakwater looks at it only to tell CloudEvents.
func saysJSON(a arrival) error {
	if is := strings.ToLower(a.header.Get("Content-Type")); !strings.HasPrefix(is, "application/") || !strings.Contains(is, "json") {
		return fmt.Errorf("it is %q", is)
	}
	return nil
}

func isReadable(a arrival) error { return a.unreadable }

// askedFor returns the checks of a node that were asked for.
func (s *side) askedFor(node string) []*asked {
	var out []*asked
	for _, a := range s.asked {
		if a.node == node {
			out = append(out, a)
		}
	}
	return out
}

func namesWhatWasAsked(s *side, at time.Time, r callback.Received) error {
	nodes := s.askedFor(r.Data.NodeID)
	if r.Data.BizExecOrderID != s.order {
		return fmt.Errorf("node %s was called back for order %s, not %s", r.Data.NodeID, r.Data.BizExecOrderID, s.order)
	}
	if len(nodes) == 0 {
		if s.lostStart() {
			return nil // of the node that the lost answer named
		}
		return fmt.Errorf("node %s of order %s was called back, but no start was answered with it", r.Data.NodeID, r.Data.BizExecOrderID)
	}
	for _, a := range nodes {
		if a.stage == r.Data.Stage && !at.Before(a.since) {
			return nil
		}
	}
	return fmt.Errorf("%s was called back for %s, which nobody had asked for", r.Data.NodeID, r.Data.Stage)
}

// lostStart says whether a start got no usable answer.
func (s *side) lostStart() bool {
	return slices.ContainsFunc(s.wire.all(), func(e exchange) bool {
		_, err := e.envelope()
		return strings.HasSuffix(e.action, "StartNotify") && (e.broken != nil || e.status != http.StatusOK || err != nil)
	})
}

// namesWhatWasChecked: an order's verdict and a batch's go different ways. A
// CloudEvent does not tell.
func namesWhatWasChecked(s *side, _ time.Time, r callback.Received) error {
	if r.Form != "json" {
		return nil
	}
	for _, a := range s.askedFor(r.Data.NodeID) {
		if (a.kind == altershield.CheckOrder) != (r.Check == altershield.CheckOrder) {
			return fmt.Errorf("%s was called back with changeCheckType %q", a.what, r.Check)
		}
	}
	return nil
}

// agreesWithItself: where the two differ Breakwater believes the word.
func agreesWithItself(a arrival) error {
	if len(a.said) != 1 || a.said[0].Form != "json" {
		return nil
	}
	said, err := altershield.ParseCallback(a.body)
	if err != nil {
		return nil //nolint:nilerr // that it cannot be read is said by another check
	}
	if pass := counts(said.Verdict) == "Pass"; pass != said.CheckPass {
		return fmt.Errorf("the verdict is %q and checkPass is %t", said.Verdict, said.CheckPass)
	}
	return nil
}

func namesPodsOfTheBatch(s *side, _ time.Time, r callback.Received) error {
	for _, b := range s.batches {
		if b.node != r.Data.NodeID {
			continue
		}
		for _, p := range r.Data.PodResults {
			if !b.has(p.Pod) {
				return fmt.Errorf("%s was called back with pod %q, which is not one of %v", b.name, p.Pod, b.pods)
			}
		}
	}
	return nil
}
