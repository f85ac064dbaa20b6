package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions/callback"
)

// verdictChecks look at what was said in the end.
func verdictChecks() []check {
	return []check{
		{"a verdict is a word with a meaning", published, eachVerdict(saysAKnownWord)},
		{"callbacks of one stage agree", required, sayOneThing},
		{"retrieve agrees with what was called back", required, retrievesTheSame},
		{"a pass was judged: it comes with rules, or retrieve says pass", published, wasJudged},
	}
}

// counts says what a word counts as.
func counts(word string) v1alpha1.Outcome { return v1alpha1.ParseVerdict(word) }

// saysAKnownWord: every other word counts as no verdict, too.
func saysAKnownWord(_ *side, _ time.Time, r callback.Received) error {
	if slices.Contains([]string{"none", "inconc"}, r.Data.Verdict) || counts(r.Data.Verdict) != v1alpha1.OutcomeNoVerdict {
		return nil
	}
	return fmt.Errorf("the verdict %q counts as no verdict", r.Data.Verdict)
}

func sayOneThing(_ context.Context, s *side) error {
	return s.eachStage(func(a *asked, said []callback.Received) error {
		for _, r := range said {
			if counts(r.Data.Verdict) != counts(said[0].Data.Verdict) {
				return fmt.Errorf("%s was called back as %q and as %q", a.what, said[0].Data.Verdict, r.Data.Verdict)
			}
		}
		return nil
	})
}

// retrievesTheSame: where a callback is lost, retrieve decides. A pass with no
// rule may be that of a check which timed out, and then retrieve says fail.
func retrievesTheSame(ctx context.Context, s *side) error {
	return s.eachStage(func(a *asked, said []callback.Received) error {
		passed := s.passed(ctx, a.node, a.stage)
		for _, r := range said {
			switch o := counts(r.Data.Verdict); {
			case o == v1alpha1.OutcomePass && !passed && !r.Unjudged:
				return fmt.Errorf("%s was called back as %q, and retrieve does not say pass", a.what, r.Data.Verdict)
			case o != v1alpha1.OutcomePass && passed:
				return fmt.Errorf("%s was called back as %q, and retrieve says pass", a.what, r.Data.Verdict)
			}
		}
		return nil
	})
}

// wasJudged: otherwise it counts as no verdict.
func wasJudged(ctx context.Context, s *side) error {
	return s.eachStage(func(a *asked, said []callback.Received) error {
		for _, r := range said {
			if r.Unjudged && !s.passed(ctx, a.node, a.stage) {
				return fmt.Errorf("%s was called back as a pass with no rule, and retrieve does not say pass: it counts as no verdict", a.what)
			}
		}
		return nil
	})
}

// eachStage looks at every check that was called back and can be believed.
func (s *side) eachStage(look func(*asked, []callback.Received) error) error {
	found := false
	for _, a := range s.asked {
		said := s.came.believed(a.node, a.stage)
		if len(said) == 0 {
			continue
		}
		found = true
		if err := look(a, said); err != nil {
			return err
		}
	}
	if !found {
		return skip("nothing was called back that can be believed")
	}
	return nil
}
