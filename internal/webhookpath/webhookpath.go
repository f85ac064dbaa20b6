// Package webhookpath makes and checks the secret paths of webhooks. Any pod can connect to a
// webhook, and by default the API server does not authenticate itself. The path identifies
// the API server, because no other client of the webhook reads the paths from the webhook
// configurations.
//
// A path is /admission/<slot>-<mac>/<webhook>. The message authentication code (mac)
// authenticates slot and webhook with the private key of the webhook's certificate, so
// that replicas share no further state. When a call fails, the API server shows the
// path to the user whose request it was; therefore a path is replaced every SlotLength.
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
	// SlotLength is the time after which the paths are replaced.
	SlotLength = 10 * time.Minute
	// macBytes is the length of the authentication code.
	macBytes = 16
)

// Path returns the path of a webhook at a time. key is the private key of the
// certificate.
func Path(key []byte, webhook string, now time.Time) string {
	slot := slotAt(now)
	return Prefix + strconv.FormatInt(slot, 36) + "-" + hex.EncodeToString(mac(key, slot, webhook)) + "/" + webhook
}

// Recent reports whether a slot is the current one, the one before or the one after: API
// servers see new paths with a delay, and clocks differ.
func Recent(slot int64, now time.Time) bool {
	current := slotAt(now)
	return current-1 <= slot && slot <= current+1
}

// Slot returns the time slot of a path, and whether the path is authentic.
func Slot(key []byte, path string) (int64, bool) {
	secret, webhook := split(path)
	number, code, ok := strings.Cut(secret, "-")
	if !ok || len(key) == 0 || webhook == "" {
		return 0, false
	}
	slot, err := strconv.ParseInt(number, 36, 64)
	if err != nil {
		return 0, false
	}
	got, err := hex.DecodeString(code)
	return slot, err == nil && hmac.Equal(got, mac(key, slot, webhook))
}

// WithoutSecret returns a path without its slot and code.
func WithoutSecret(path string) string {
	_, webhook := split(path)
	return Prefix + webhook
}

// NextSlot returns the time until the paths must be replaced.
func NextSlot(now time.Time) time.Duration {
	return now.Truncate(SlotLength).Add(SlotLength).Sub(now)
}

// split returns the slot with its code, and the webhook.
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

func slotAt(now time.Time) int64 { return now.Unix() / int64(SlotLength/time.Second) }

func mac(key []byte, slot int64, webhook string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("webhook path " + strconv.FormatInt(slot, 36) + "/" + webhook))
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
