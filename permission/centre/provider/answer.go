package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// longestWait bounds what a provider's Retry-After may ask for.
	longestWait = time.Hour
	// longestMessage bounds what of an answer a person is told.
	longestMessage = 200
)

// answer is what came back.
type answer struct {
	status  int
	body    any
	headers map[string]string
}

func (a answer) vars() map[string]any {
	return map[string]any{"status": int64(a.status), "body": a.body, "headers": a.headers}
}

func newAnswer(status int, header http.Header, body []byte) answer {
	a := answer{status: status, headers: map[string]string{}}
	for name := range header {
		a.headers[strings.ToLower(name)] = header.Get(name)
	}
	if json.Unmarshal(body, &a.body) != nil {
		a.body = nil
	}
	return a
}

// judge says what an answer means.
func (c *httpCall) judge(ctx context.Context, op Op, a answer, now time.Time) Result {
	vars := a.vars()
	r := Result{Outcome: c.outcome(ctx, op, a, vars), Sent: true}
	switch r.Outcome {
	case Done:
		r.Reason, r.Message = ReasonGranted, ""
		if op == Revoke {
			r.Reason = ReasonRevoked
		}
	case Pending:
		r.Reason, r.Message = ReasonPending, "the provider has not decided yet"
	case Denied:
		r.Reason, r.Message = ReasonDenied, "the provider refused the request (HTTP "+strconv.Itoa(a.status)+")"
	case Failed:
		r.Reason, r.Message = failure(a.status)
		r.RetryAfter = retryAfter(a.headers["retry-after"], now)
	}
	if c.message != nil && r.Outcome != Done {
		if text, err := c.message.string(ctx, vars); err == nil && text != "" {
			r.Message += ": " + printable(text)
		}
	}
	if r.Outcome == Done || r.Outcome == Pending {
		r.Kept = map[string]any{}
		for name, e := range c.keep {
			if v, err := e.value(ctx, vars); err == nil {
				r.Kept[name] = v
			}
		}
	}
	return r
}

func (c *httpCall) outcome(ctx context.Context, op Op, a answer, vars map[string]any) Outcome {
	switch {
	case op == Revoke && (a.status == http.StatusNotFound || a.status == http.StatusGone):
		return Done
	// What the provider's owner wrote counts before what we assume.
	case c.granted.holds(ctx, vars):
		return Done
	case c.pending.holds(ctx, vars):
		return Pending
	case c.denied.holds(ctx, vars):
		return Denied
	case c.granted == nil && a.status >= 200 && a.status < 300:
		return Done
	case c.denied == nil && deniedByDefault(a.status):
		return Denied
	default:
		return Failed
	}
}

// deniedByDefault: the request is at fault. Not so when the centre's own
// credentials are refused, or when it is only a matter of time.
func deniedByDefault(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

func failure(status int) (reason, message string) {
	switch status {
	case http.StatusTooManyRequests:
		return ReasonThrottled, "the provider asks for fewer calls (HTTP 429)"
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return ReasonCredentials, "the provider refuses the centre's credentials (HTTP " + strconv.Itoa(status) + ")"
	default:
		return ReasonError, "the provider answered HTTP " + strconv.Itoa(status) + ", which says neither yes nor no"
	}
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		d = time.Duration(min(max(seconds, 0), int(longestWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestWait)
}

// printable keeps a message short and on one line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, ""))
	if runes := []rune(s); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + "…"
	}
	return s
}
