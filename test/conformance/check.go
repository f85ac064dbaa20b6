package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// level is the importance of a check.
type level string

const (
	// required: Breakwater depends on it.
	required level = "required"
	// published: the published server does it, but Breakwater does not depend
	// on it.
	published level = "published"
)

// check is one statement about a server, and the test of that statement.
type check struct {
	statement string
	level     level
	try       func(context.Context, *suite) error
}

// result is the result of a check. Err is nil if the statement is true.
type result struct {
	statement string
	level     level
	err       error
}

// skipped is the error of a check that could not be tested.
type skipped struct{ why string }

func (s *skipped) Error() string { return s.why }

func skip(format string, args ...any) error { return &skipped{fmt.Sprintf(format, args...)} }

func (r result) skipped() bool {
	return errors.As(r.err, new(*skipped))
}

// failed reports whether the statement is false.
func (r result) failed() bool { return r.err != nil && !r.skipped() }

// duringChecks call the server. They are ordered by their preconditions.
func duringChecks() []check {
	return slices.Concat(callChecks(), releaseChecks(), argumentChecks(), nodeChecks())
}

// afterChecks examine the answers and callbacks.
func afterChecks() []check {
	return slices.Concat(answerChecks(), callbackChecks(), verdictChecks())
}

// try runs all checks against the server. Before afterChecks it waits for late
// and repeated callbacks.
func (s *suite) try(ctx context.Context) []result {
	var out []result
	run := func(checks []check) {
		for _, c := range checks {
			out = append(out, result{c.statement, c.level, c.try(ctx, s)})
		}
	}
	run(duringChecks())
	select {
	case <-time.After(s.lateWait):
	case <-ctx.Done():
	}
	run(afterChecks())
	return out
}
