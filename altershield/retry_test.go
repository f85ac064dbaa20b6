package altershield

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestRetryableErrors(t *testing.T) {
	rejected := func(code string) error { return &ResultError{Code: code} }
	broken := func(kind CallErrorKind, maybeReceived bool) error {
		return &CallError{Kind: kind, MaybeReceived: maybeReceived}
	}
	status := func(code int) error { return &CallError{Kind: KindStatus, Status: code, MaybeReceived: true} }
	for name, tc := range map[string]struct {
		err               error
		harmless, harmful bool
		reached           bool
	}{
		"success":                          {err: nil},
		"101 argument":                     {err: rejected("101")},
		"102 signature":                    {err: rejected("102")},
		"103 state":                        {err: rejected("103")},
		"105 not found":                    {err: rejected("105")},
		"106 exists":                       {err: rejected("106")},
		"901 internal":                     {err: rejected("901"), harmless: true, reached: true},
		"an unknown code":                  {err: rejected("777")},
		"no code":                          {err: rejected(""), reached: true},
		"no connection":                    {err: broken(KindDial, false), harmless: true, harmful: true},
		"timeout after the request":        {err: broken(KindTimeout, true), harmless: true, reached: true},
		"reset after the request":          {err: broken(KindIO, true), harmless: true, reached: true},
		"a malformed answer":               {err: broken(KindMalformed, true), harmless: true, reached: true},
		"500":                              {err: status(500), harmless: true, reached: true},
		"502":                              {err: status(502), harmless: true, reached: true},
		"503":                              {err: status(503), harmless: true, reached: true},
		"429":                              {err: status(429), harmless: true, reached: true},
		"408":                              {err: status(408), harmless: true, reached: true},
		"404 is a wrong base-url":          {err: status(404), reached: true},
		"400":                              {err: status(400), reached: true},
		"302":                              {err: status(302), reached: true},
		"the client's rate limit":          {err: broken(KindThrottled, false)},
		"canceled before sending":          {err: broken(KindCanceled, false)},
		"canceled after sending":           {err: broken(KindCanceled, true), reached: true},
		"a request that cannot be built":   {err: errors.New("json: unsupported")},
		"a context error without a reason": {err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{tc.err, fmt.Errorf("wrapped: %w", tc.err)} {
				if tc.err == nil {
					err = nil
				}
				if got := retryable(err, repeatHarmless); got != tc.harmless {
					t.Errorf("a harmless call: got %v, want %v", got, tc.harmless)
				}
				if got := retryable(err, repeatHarmful); got != tc.harmful {
					t.Errorf("a start or finish: got %v, want %v", got, tc.harmful)
				}
				if got := MayHaveTakenEffect(err); got != tc.reached {
					t.Errorf("may have reached: got %v, want %v", got, tc.reached)
				}
			}
		})
	}
}

func TestErrorsAreClassifiedByTheirCode(t *testing.T) {
	helpers := map[string]func(error) bool{
		CodeArgument: IsArgument, CodeSignature: IsSignature, CodeState: IsState,
		CodeNotFound: IsNotFound, CodeExists: IsExists, CodeInternal: IsInternal,
	}
	for code := range helpers {
		err := fmt.Errorf("submit: %w", &ResultError{Action: "a", Code: code, Msg: "m"})
		for other, is := range helpers {
			if is(err) != (code == other) {
				t.Errorf("code %s is checked for %s: got %t", code, other, is(err))
			}
		}
	}
}

func TestAMetricLabelIsBounded(t *testing.T) {
	for want, err := range map[string]error{
		"000":     nil,
		"103":     &ResultError{Code: "103"},
		"other":   &ResultError{Code: "an unknown code"},
		"timeout": &CallError{Kind: KindTimeout},
	} {
		if got := resultOf(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}
