package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// answerChecks examine all answers of the run.
func answerChecks() []check {
	return []check{
		{"every call is answered with HTTP 200 and the envelope", required, answersWithTheEnvelope},
		{"success, resultCode, msg and domain are always present, even if null", published, namesAllFields},
		{"a rejection has a code", required, rejectionsHaveACode},
	}
}

// readable returns the calls that were not answered with HTTP 400. A server may
// answer so to a body that cannot be parsed.
func (s *suite) readable() []exchange {
	return slices.DeleteFunc(s.wire.all(), func(e exchange) bool { return e.status == http.StatusBadRequest })
}

func answersWithTheEnvelope(_ context.Context, s *suite) error {
	for _, e := range s.readable() {
		if e.err != nil {
			return fmt.Errorf("%s got no answer: %w", e.action, e.err)
		}
		if e.status != http.StatusOK {
			return fmt.Errorf("%s was answered with HTTP %d: %s", e.action, e.status, head(e.answer))
		}
		if _, err := e.envelope(); err != nil {
			return err
		}
	}
	return nil
}

func namesAllFields(_ context.Context, s *suite) error {
	return s.eachAnswer(func(e exchange, answer envelope) error {
		for _, name := range []string{"success", "resultCode", "msg", "domain"} {
			if _, ok := answer.has[name]; !ok {
				return fmt.Errorf("an answer to %s has no %s: %s", e.action, name, head(e.answer))
			}
		}
		return nil
	})
}

func rejectionsHaveACode(_ context.Context, s *suite) error {
	return s.eachAnswer(func(e exchange, answer envelope) error {
		if !answer.success && (answer.code == "" || answer.code == "000") {
			return fmt.Errorf("%s was rejected with code %q: %s", e.action, answer.code, answer.msg)
		}
		return nil
	})
}

func (s *suite) eachAnswer(look func(exchange, envelope) error) error {
	for _, e := range s.readable() {
		answer, err := e.envelope()
		if e.err != nil || e.status != http.StatusOK || err != nil {
			continue // reported by another check
		}
		if err := look(e, answer); err != nil {
			return err
		}
	}
	return nil
}
