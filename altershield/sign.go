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

// Ends of the three signature headers; Config.HeaderPrefix is their beginning.
const (
	HeaderPlatform  = "Platform"
	HeaderTimestamp = "Timestamp"
	HeaderSign      = "Sign"
)

// DefaultMaxSkew is how far a timestamp may be from our clock.
const DefaultMaxSkew = 5 * time.Minute

// Sign returns the signature of a body, in the server's own way: a plain
// SHA-256 (not an HMAC) over timestamp, body without CR and LF, and token, as
// padded base64url, in upper case. The timestamp is decimal milliseconds, as
// it stands in the header.
func Sign(timestamp string, body []byte, token string) string {
	h := sha256.New()
	h.Write([]byte(timestamp))
	h.Write(withoutLineEnds(body))
	h.Write([]byte("&token="))
	h.Write([]byte(token))
	return strings.ToUpper(base64.URLEncoding.EncodeToString(h.Sum(nil)))
}

// withoutLineEnds: the server reads a body line by line and joins the lines.
func withoutLineEnds(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for _, b := range body {
		if b != '\r' && b != '\n' {
			out = append(out, b)
		}
	}
	return out
}

// AuthReason is why a request was not believed; it serves as a metric label.
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

// AuthError is a request that is not believed. Its text holds no secret and
// nothing of the body.
type AuthError struct {
	Reason AuthReason
	// Detail helps the operator of the server, not an attacker.
	Detail string
}

// Error implements error.
func (e *AuthError) Error() string { return fmt.Sprintf("authenticate: %s: %s", e.Reason, e.Detail) }

// Verify says whether the headers sign the body: platform, a timestamp within
// maxSkew of now (either way; 0 is DefaultMaxSkew), and a signature that is
// compared in constant time. The error is an *AuthError. An empty token
// verifies nothing.
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
		return &AuthError{AuthPlatform, "header " + prefix + HeaderPlatform + " names another platform"}
	}
	timestamp := header.Get(prefix + HeaderTimestamp)
	ms, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return &AuthError{AuthTimestamp, "header " + prefix + HeaderTimestamp + " is not a number of milliseconds"}
	}
	if skew := now.Sub(time.UnixMilli(ms)).Abs(); skew > maxSkew {
		return &AuthError{AuthSkew, fmt.Sprintf("the timestamp is %s from our clock, more than %s: compare the clocks", skew.Round(time.Second), maxSkew)}
	}
	if subtle.ConstantTimeCompare([]byte(header.Get(prefix+HeaderSign)), []byte(Sign(timestamp, body, token))) != 1 {
		return &AuthError{AuthBadSignature, "the signature does not fit body and token"}
	}
	return nil
}

// SignHeader sets the three headers on a request's header.
func SignHeader(header http.Header, prefix, platform string, body []byte, token string, now time.Time) {
	timestamp := strconv.FormatInt(now.UnixMilli(), 10)
	header.Set(prefix+HeaderPlatform, platform)
	header.Set(prefix+HeaderTimestamp, timestamp)
	header.Set(prefix+HeaderSign, Sign(timestamp, body, token))
}
