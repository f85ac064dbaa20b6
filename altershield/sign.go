package altershield

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"hash"
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
	writeWithoutLineBreaks(h, body)
	h.Write([]byte("&token="))
	h.Write([]byte(token))
	return strings.ToUpper(base64.URLEncoding.EncodeToString(h.Sum(nil)))
}

// writeWithoutLineBreaks writes a body without CR and LF, because the server joins the
// lines of a body.
func writeWithoutLineBreaks(h hash.Hash, body []byte) {
	for len(body) > 0 {
		line := bytes.IndexAny(body, "\r\n")
		if line < 0 {
			line = len(body)
		}
		h.Write(body[:line])
		body = body[min(line+1, len(body)):]
	}
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

// Signature is a signature of a body that is not verified yet.
type Signature struct{ timestamp, sign string }

// signatureLength is the length of a SHA-256 as padded base64.
const signatureLength = 44

// ReadSignature reads the signature headers of a request: the platform, a timestamp
// within maxSkew before or after now (0 means DefaultMaxSkew), and a signature. It needs
// no body, so the body of a request without these headers need not be read. The error is
// an *AuthError.
func ReadSignature(header http.Header, prefix, platform string, now time.Time, maxSkew time.Duration) (Signature, error) {
	if prefix == "" {
		prefix = DefaultHeaderPrefix
	}
	if maxSkew <= 0 {
		maxSkew = DefaultMaxSkew
	}
	for _, name := range []string{HeaderPlatform, HeaderTimestamp, HeaderSign} {
		if header.Get(prefix+name) == "" {
			return Signature{}, &AuthError{AuthNoHeader, "header " + prefix + name + " is missing"}
		}
	}
	if header.Get(prefix+HeaderPlatform) != platform {
		return Signature{}, &AuthError{AuthPlatform, "header " + prefix + HeaderPlatform + " has another platform"}
	}
	s := Signature{timestamp: header.Get(prefix + HeaderTimestamp), sign: header.Get(prefix + HeaderSign)}
	ms, err := strconv.ParseInt(s.timestamp, 10, 64)
	if err != nil {
		return Signature{}, &AuthError{AuthTimestamp, "header " + prefix + HeaderTimestamp + " is not a number of milliseconds"}
	}
	if skew := now.Sub(time.UnixMilli(ms)).Abs(); skew > maxSkew {
		return Signature{}, &AuthError{AuthSkew, fmt.Sprintf("timestamp differs from the local clock by %s, more than %s: synchronize the clocks", skew.Round(time.Second), maxSkew)}
	}
	if len(s.sign) != signatureLength {
		return Signature{}, &AuthError{AuthBadSignature, "header " + prefix + HeaderSign + " is not a signature"}
	}
	return s, nil
}

// Verify verifies that the signature is that of a body with one of the tokens. It
// compares in constant time. Empty tokens are ignored. The error is an *AuthError.
func (s Signature) Verify(body []byte, tokens ...string) error {
	for _, token := range tokens {
		if token == "" {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(s.sign), []byte(Sign(s.timestamp, body, token))) == 1 {
			return nil
		}
	}
	return &AuthError{AuthBadSignature, "signature does not match body and token"}
}

// Verify reads and verifies the signature of a body (ReadSignature, Signature.Verify).
func Verify(header http.Header, prefix, platform string, body []byte, token string, now time.Time, maxSkew time.Duration) error {
	if token == "" {
		return &AuthError{AuthNoToken, "no token is configured"}
	}
	s, err := ReadSignature(header, prefix, platform, now, maxSkew)
	if err != nil {
		return err
	}
	return s.Verify(body, token)
}

// SignHeader sets the three signature headers of a request.
func SignHeader(header http.Header, prefix, platform string, body []byte, token string, now time.Time) {
	timestamp := strconv.FormatInt(now.UnixMilli(), 10)
	header.Set(prefix+HeaderPlatform, platform)
	header.Set(prefix+HeaderTimestamp, timestamp)
	header.Set(prefix+HeaderSign, Sign(timestamp, body, token))
}
