// Package webhookpath makes and checks the secret paths of webhooks. Any pod can connect to a
// webhook, and by default the API server does not authenticate itself. The secret path
// authenticates it: only those who may read the webhook configurations know the path. These are the
// API server, the webhooks and controllers of Breakwater, and admins.
//
// A path is /admission/<period>-<mac>/<webhook>. The message authentication code (mac)
// authenticates period and webhook with the private key of the webhook's certificate, so
// that replicas share no further state. When a call fails, the API server shows the
// path to the user whose request it was; therefore a path is replaced every PeriodLength.
package webhookpath

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Prefix begins all paths.
	Prefix = "/admission/"
	// PeriodLength is the time after which the paths are replaced.
	PeriodLength = 10 * time.Minute
	// macBytes is the length of the authentication code.
	macBytes = 16
)

// Path returns the path of a webhook at a time. key is the private key of the
// certificate.
func Path(key []byte, webhook string, now time.Time) string {
	period := periodAt(now)
	return Prefix + strconv.FormatInt(period, 36) + "-" + hex.EncodeToString(mac(key, period, webhook)) + "/" + webhook
}

// Recent reports whether a period is the current one, the one before or the one after: API
// servers see new paths with a delay, and clocks differ.
func Recent(period int64, now time.Time) bool {
	current := periodAt(now)
	return current-1 <= period && period <= current+1
}

// Period returns the period of a path, and whether the path is authentic.
func Period(key []byte, path string) (int64, bool) {
	secret, webhook := split(path)
	number, code, ok := strings.Cut(secret, "-")
	if !ok || len(key) == 0 || webhook == "" {
		return 0, false
	}
	period, err := strconv.ParseInt(number, 36, 64)
	if err != nil {
		return 0, false
	}
	got, err := hex.DecodeString(code)
	return period, err == nil && hmac.Equal(got, mac(key, period, webhook))
}

// WithoutSecret returns a path without its period and code.
func WithoutSecret(path string) string {
	_, webhook := split(path)
	return Prefix + webhook
}

// UntilNextPeriod returns the time until the paths must be replaced.
func UntilNextPeriod(now time.Time) time.Duration {
	return now.Truncate(PeriodLength).Add(PeriodLength).Sub(now)
}

// split returns the period with its code, and the webhook.
func split(path string) (secret, webhook string) {
	rest, ok := strings.CutPrefix(path, Prefix)
	if !ok {
		return "", ""
	}
	if secret, webhook, ok = strings.Cut(rest, "/"); !ok {
		return "", rest
	}
	return secret, webhook
}

func periodAt(now time.Time) int64 { return now.Unix() / int64(PeriodLength/time.Second) }

func mac(key []byte, period int64, webhook string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("webhook path " + strconv.FormatInt(period, 36) + "/" + webhook))
	return h.Sum(nil)[:macBytes]
}

type contextKey struct{}

// WithPath returns a context with the path that a request had before WithoutSecret.
func WithPath(ctx context.Context, path string) context.Context {
	return context.WithValue(ctx, contextKey{}, path)
}

// Of returns the secret path at which a request was received. Another replica accepts it,
// too.
func Of(r *http.Request) string {
	if path, ok := r.Context().Value(contextKey{}).(string); ok {
		return path
	}
	return r.URL.Path
}
