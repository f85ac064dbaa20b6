package altershield

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestWhatIsTriedAgain(t *testing.T) {
	refusal := func(code string) error { return &ResultError{Code: code} }
	broken := func(kind TransportKind, sent bool) error { return &TransportError{Kind: kind, Sent: sent} }
	status := func(code int) error { return &TransportError{Kind: KindStatus, Status: code, Sent: true} }
	for name, tc := range map[string]struct {
		err               error
		harmless, harmful bool
		reached           bool
	}{
		"success":                          {err: nil},
		"101 argument":                     {err: refusal("101")},
		"102 signature":                    {err: refusal("102")},
		"103 state":                        {err: refusal("103")},
		"105 not found":                    {err: refusal("105")},
		"106 exists":                       {err: refusal("106")},
		"901 internal":                     {err: refusal("901"), harmless: true, reached: true},
		"an unknown code":                  {err: refusal("777")},
		"no code":                          {err: refusal(""), reached: true},
		"no connection":                    {err: broken(KindDial, false), harmless: true, harmful: true},
		"timeout after the request":        {err: broken(KindTimeout, true), harmless: true, reached: true},
		"reset after the request":          {err: broken(KindIO, true), harmless: true, reached: true},
		"an answer that cannot be read":    {err: broken(KindMalformed, true), harmless: true, reached: true},
		"500":                              {err: status(500), harmless: true, reached: true},
		"502":                              {err: status(502), harmless: true, reached: true},
		"503":                              {err: status(503), harmless: true, reached: true},
		"429":                              {err: status(429), harmless: true, reached: true},
		"408":                              {err: status(408), harmless: true, reached: true},
		"404 is a wrong base-url":          {err: status(404), reached: true},
		"400":                              {err: status(400), reached: true},
		"302":                              {err: status(302), reached: true},
		"our own token bucket":             {err: broken(KindThrottled, false)},
		"the caller gave up, unsent":       {err: broken(KindCanceled, false)},
		"the caller gave up, sent":         {err: broken(KindCanceled, true), reached: true},
		"a request that cannot be built":   {err: errors.New("json: unsupported")},
		"a context error without a reason": {err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{tc.err, fmt.Errorf("wrapped: %w", tc.err)} {
				if tc.err == nil {
					err = nil
				}
				if got := retryable(err, harmless); got != tc.harmless {
					t.Errorf("a harmless call: got %v, want %v", got, tc.harmless)
				}
				if got := retryable(err, harmful); got != tc.harmful {
					t.Errorf("a start or finish: got %v, want %v", got, tc.harmful)
				}
				if got := MayHaveReached(err); got != tc.reached {
					t.Errorf("may have reached: got %v, want %v", got, tc.reached)
				}
			}
		})
	}
}

func TestErrorsTellTheirCode(t *testing.T) {
	helpers := map[string]func(error) bool{
		CodeArgument: IsArgument, CodeSignature: IsSignature, CodeState: IsState,
		CodeNotFound: IsNotFound, CodeExists: IsExists, CodeInternal: IsInternal,
	}
	for code := range helpers {
		err := fmt.Errorf("submit: %w", &ResultError{Action: "a", Code: code, Msg: "m"})
		for other, is := range helpers {
			if is(err) != (code == other) {
				t.Errorf("code %s asked for %s", code, other)
			}
		}
	}
}

func TestAMetricLabelIsBounded(t *testing.T) {
	for want, err := range map[string]error{
		"000":     nil,
		"103":     &ResultError{Code: "103"},
		"other":   &ResultError{Code: "a new one for each call"},
		"timeout": &TransportError{Kind: KindTimeout},
	} {
		if got := resultOf(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}
