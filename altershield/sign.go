package altershield

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Suffixes of the three signature headers; Config.HeaderPrefix is their prefix.
const (
	HeaderPlatform  = "Platform"
	HeaderTimestamp = "Timestamp"
	HeaderSign      = "Sign"
)

// DefaultMaxSkew is the default maximum difference between a timestamp and the
// local clock.
const DefaultMaxSkew = 5 * time.Minute

// Sign returns the signature of a body as the server computes it: a plain SHA-256
// (not an HMAC) of timestamp, body without CR and LF, and token, as padded
// base64url in upper case. The timestamp is in milliseconds, as in the header.
func Sign(timestamp string, body []byte, token string) string {
	h := sha256.New()
	h.Write([]byte(timestamp))
	h.Write(withoutLineBreaks(body))
	h.Write([]byte("&token="))
	h.Write([]byte(token))
	return strings.ToUpper(base64.URLEncoding.EncodeToString(h.Sum(nil)))
}

// withoutLineBreaks removes CR and LF, because the server joins the lines of a
// body.
func withoutLineBreaks(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for _, b := range body {
		if b != '\r' && b != '\n' {
			out = append(out, b)
		}
	}
	return out
}

// AuthReason is the cause of an AuthError, and a metric label.
type AuthReason string

// The reasons.
const (
	AuthNoToken      AuthReason = "NoToken"
	AuthNoHeader     AuthReason = "MissingHeader"
	AuthPlatform     AuthReason = "WrongPlatform"
	AuthTimestamp    AuthReason = "BadTimestamp"
	AuthSkew         AuthReason = "TimestampSkew"
	AuthBadSignature AuthReason = "BadSignature"
)

// AuthError reports a request that is not authenticated. Its text has no secrets
// and nothing of the body.
type AuthError struct {
	Reason AuthReason
	// Detail is for the operator of the server and is of no use to an attacker.
	Detail string
}

// Error implements error.
func (e *AuthError) Error() string { return fmt.Sprintf("authenticate: %s: %s", e.Reason, e.Detail) }

// Verify verifies the signature headers of a body: the platform, a timestamp
// within maxSkew before or after now (0 means DefaultMaxSkew), and the signature,
// which it compares in constant time. The error is an *AuthError. Without a token
// every request is rejected.
func Verify(header http.Header, prefix, platform string, body []byte, token string, now time.Time, maxSkew time.Duration) error {
	if token == "" {
		return &AuthError{AuthNoToken, "no token is configured"}
	}
	if prefix == "" {
		prefix = DefaultHeaderPrefix
	}
	if maxSkew <= 0 {
		maxSkew = DefaultMaxSkew
	}
	for _, name := range []string{HeaderPlatform, HeaderTimestamp, HeaderSign} {
		if header.Get(prefix+name) == "" {
			return &AuthError{AuthNoHeader, "header " + prefix + name + " is missing"}
		}
	}
	if header.Get(prefix+HeaderPlatform) != platform {
		return &AuthError{AuthPlatform, "header " + prefix + HeaderPlatform + " has another platform"}
	}
	timestamp := header.Get(prefix + HeaderTimestamp)
	ms, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return &AuthError{AuthTimestamp, "header " + prefix + HeaderTimestamp + " is not a number of milliseconds"}
	}
	if skew := now.Sub(time.UnixMilli(ms)).Abs(); skew > maxSkew {
		return &AuthError{AuthSkew, fmt.Sprintf("timestamp differs from the local clock by %s, more than %s: synchronize the clocks", skew.Round(time.Second), maxSkew)}
	}
	if subtle.ConstantTimeCompare([]byte(header.Get(prefix+HeaderSign)), []byte(Sign(timestamp, body, token))) != 1 {
		return &AuthError{AuthBadSignature, "signature does not match body and token"}
	}
	return nil
}

// SignHeader sets the three signature headers of a request.
func SignHeader(header http.Header, prefix, platform string, body []byte, token string, now time.Time) {
	timestamp := strconv.FormatInt(now.UnixMilli(), 10)
	header.Set(prefix+HeaderPlatform, platform)
	header.Set(prefix+HeaderTimestamp, timestamp)
	header.Set(prefix+HeaderSign, Sign(timestamp, body, token))
}
