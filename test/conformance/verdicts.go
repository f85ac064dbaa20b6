package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions/callback"
)

// verdictChecks compare the verdicts of the whole run.
func verdictChecks() []check {
	return []check{
		{"a verdict has a known value", published, eachVerdict(isKnownVerdict)},
		{"callbacks of one stage agree", required, callbacksAgree},
		{"retrieve agrees with the callbacks", required, retrieveAgrees},
		{"a pass has rules or is confirmed by retrieve", published, passesConfirmed},
	}
}

// counts returns the outcome of a verdict.
func counts(verdict string) v1alpha1.Outcome { return v1alpha1.ParseVerdict(verdict) }

// isKnownVerdict finds unknown verdicts, which count as no verdict.
func isKnownVerdict(_ *suite, _ time.Time, r callback.Received) error {
	if slices.Contains([]string{"none", "inconc"}, r.Data.Verdict) || counts(r.Data.Verdict) != v1alpha1.OutcomeNoVerdict {
		return nil
	}
	return fmt.Errorf("the verdict %q counts as no verdict", r.Data.Verdict)
}

func callbacksAgree(_ context.Context, s *suite) error {
	return s.eachStage(func(a *requestedCheck, received []callback.Received) error {
		for _, r := range received {
			if counts(r.Data.Verdict) != counts(received[0].Data.Verdict) {
				return fmt.Errorf("the callbacks of %s have verdicts %q and %q", a.name, received[0].Data.Verdict, r.Data.Verdict)
			}
		}
		return nil
	})
}

// retrieveAgrees compares callbacks with retrieve, which replaces a lost
// callback. It allows a pass without rules that retrieve does not confirm,
// because the check may have timed out.
func retrieveAgrees(ctx context.Context, s *suite) error {
	return s.eachStage(func(a *requestedCheck, received []callback.Received) error {
		passed := s.passed(ctx, a.node, a.stage)
		for _, r := range received {
			switch o := counts(r.Data.Verdict); {
			case o == v1alpha1.OutcomePass && !passed && !r.WithoutRules:
				return fmt.Errorf("the callback of %s has verdict %q, but retrieve does not return pass", a.name, r.Data.Verdict)
			case o != v1alpha1.OutcomePass && passed:
				return fmt.Errorf("the callback of %s has verdict %q, but retrieve returns pass", a.name, r.Data.Verdict)
			}
		}
		return nil
	})
}

// passesConfirmed finds unconfirmed passes, which count as no verdict.
func passesConfirmed(ctx context.Context, s *suite) error {
	return s.eachStage(func(a *requestedCheck, received []callback.Received) error {
		for _, r := range received {
			if r.WithoutRules && !s.passed(ctx, a.node, a.stage) {
				return fmt.Errorf("the callback of %s is a pass without rules, and retrieve does not return pass: it counts as no verdict", a.name)
			}
		}
		return nil
	})
}

// eachStage applies a check to every requested check with trusted callbacks.
func (s *suite) eachStage(look func(*requestedCheck, []callback.Received) error) error {
	found := false
	for _, a := range s.requested {
		received := s.callbacks.trusted(a.node, a.stage)
		if len(received) == 0 {
			continue
		}
		found = true
		if err := look(a, received); err != nil {
			return err
		}
	}
	if !found {
		return skip("no trusted callback arrived")
	}
	return nil
}
