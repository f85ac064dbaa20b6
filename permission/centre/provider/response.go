package provider

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxRetryAfter bounds the Retry-After of a provider.
	maxRetryAfter = time.Hour
	// maxMessageLength bounds the message that a user sees, in characters.
	maxMessageLength = 200
)

// response is an HTTP response.
type response struct {
	status  int
	body    any
	headers map[string]string
}

func (a response) vars() map[string]any {
	return map[string]any{"status": int64(a.status), "body": a.body, "headers": a.headers}
}

// newResponse returns a response without the secret of the request, which a provider may
// echo: expressions copy parts of a response into messages and into the store.
func newResponse(status int, header http.Header, body []byte, secret string) response {
	a := response{status: status, headers: map[string]string{}}
	for name := range header {
		a.headers[strings.ToLower(name)] = redactText(header.Get(name), secret)
	}
	a.body = redact(decodeJSON(body), secret)
	return a
}

func redactText(s, secret string) string {
	if secret == "" {
		return s
	}
	return strings.ReplaceAll(s, secret, "…")
}

// redact replaces the secret in all strings of a JSON value.
func redact(v any, secret string) any {
	switch v := v.(type) {
	case string:
		return redactText(v, secret)
	case []any:
		for i := range v {
			v[i] = redact(v[i], secret)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			out[redactText(name, secret)] = redact(field, secret)
		}
		return out
	default:
		return v
	}
}

// readsResponse reports whether an outcome or a kept value may depend on the body of a response.
func (c *httpCall) readsResponse() bool {
	return c.granted != nil || c.denied != nil || c.pending != nil || len(c.keep) > 0
}

// interpret maps a response to a Result.
func (c *httpCall) interpret(ctx context.Context, op Op, a response, now time.Time) Result {
	// A condition that is interrupted would be false, and 2xx then granted. The cost limit bounds the evaluation.
	ctx = context.WithoutCancel(ctx)
	vars := a.vars()
	r := Result{Outcome: c.outcome(ctx, a, vars), Sent: true}
	switch r.Outcome {
	case Done:
		r.Reason, r.Message = ReasonGranted, ""
		if op == Revoke {
			r.Reason = ReasonRevoked
		}
	case Pending:
		r.Reason, r.Message = ReasonPending, "the provider has not decided yet"
	case Denied:
		r.Reason, r.Message = ReasonDenied, "the provider denied the request (HTTP "+strconv.Itoa(a.status)+")"
	case Failed:
		r.Reason, r.Message = failureReason(op, a.status)
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

func (c *httpCall) outcome(ctx context.Context, a response, vars map[string]any) Outcome {
	// The configured conditions override the defaults. No default interprets a status that
	// a wrong URL causes too, such as 404: it does not prove that the grant is revoked.
	switch {
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

// deniedByDefault reports whether the status means that the parameters are wrong.
// Other 4xx may be caused by the registration of the provider.
func deniedByDefault(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusConflict || status == http.StatusUnprocessableEntity
}

func failureReason(op Op, status int) (reason, message string) {
	code := "HTTP " + strconv.Itoa(status)
	switch status {
	case http.StatusTooManyRequests:
		return ReasonProviderThrottled, "the provider asks for fewer calls (" + code + ")"
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return ReasonCredentialsRejected, "the provider rejects the centre's credentials (" + code + ")"
	case http.StatusForbidden:
		message = "the provider forbids the call (" + code + "), perhaps because of the centre's credentials"
		if op != Revoke {
			message += "; if not, set http." + string(op) + ".denied"
		}
		return ReasonCredentialsRejected, message
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed:
		message = "the provider answered " + code + ", perhaps because the URL is wrong; "
		if op == Revoke {
			return ReasonProviderMisconfigured, message + "if it means that there is no such grant, set http.revoke.granted"
		}
		return ReasonProviderMisconfigured, message + "if not, set http." + string(op) + ".denied"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return ReasonProviderError, "the provider redirects the call to a request with another method (" + code + "), which the centre does not send; " +
			"correct the URL, or set http." + string(op) + ".granted if the answer means success"
	default:
		return ReasonProviderError, "the provider answered " + code + ", which is neither granted nor denied"
	}
}

// retryAfter parses a Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		d = time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// printable limits a message to one line of maxMessageLength characters.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, ""))
	if runes := []rune(s); len(runes) > maxMessageLength {
		return string(runes[:maxMessageLength]) + "…"
	}
	return s
}
