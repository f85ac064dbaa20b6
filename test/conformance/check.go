package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// level says how much depends on a check.
type level string

const (
	// required: Breakwater depends on it.
	required level = "required"
	// published: the published server does it, and Breakwater copes with a
	// judge that does not.
	published level = "published"
)

// check is one sentence about a judge, and how it is tried.
type check struct {
	says  string
	level level
	try   func(context.Context, *side) error
}

// result is what became of a check. Err is nil where the sentence is true.
type result struct {
	says  string
	level level
	err   error
}

// skipped is why a check could not be tried.
type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

func skip(format string, args ...any) error { return &skipped{fmt.Sprintf(format, args...)} }

func (r result) skipped() bool {
	var s *skipped
	return errors.As(r.err, &s)
}

// failed says whether the judge does otherwise than the sentence.
func (r result) failed() bool { return r.err != nil && !r.skipped() }

// duringChecks call the judge, in an order in which each finds what it needs.
func duringChecks() []check {
	return slices.Concat(callChecks(), releaseChecks(), argumentChecks(), nodeChecks())
}

// afterChecks look at what was answered and called back.
func afterChecks() []check {
	return slices.Concat(answerChecks(), callbackChecks(), verdictChecks())
}

// try runs all checks against the judge. Between calling and looking it waits
// for callbacks that are late or come again.
func (s *side) try(ctx context.Context) []result {
	var out []result
	run := func(checks []check) {
		for _, c := range checks {
			out = append(out, result{c.says, c.level, c.try(ctx, s)})
		}
	}
	run(duringChecks())
	select {
	case <-time.After(s.linger):
	case <-ctx.Done():
	}
	run(afterChecks())
	return out
}
