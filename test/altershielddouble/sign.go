package altershielddouble

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The suffixes of the signature headers.
const (
	headerPlatform  = "Platform"
	headerTimestamp = "Timestamp"
	headerSign      = "Sign"
)

// Signature is the mode of signature checks.
type Signature string

// The modes.
const (
	// Enforce answers 102 to a call without a valid signature, as the server
	// does.
	Enforce Signature = "enforce"
	// Skip accepts all calls.
	Skip Signature = "skip"
)

// sign is implemented independently of the client, so that the tests find a
// mistake in one of them.
func sign(timestamp, body, token string) string {
	oneLine := strings.NewReplacer("\r", "", "\n", "").Replace(body)
	sum := sha256.Sum256([]byte(timestamp + oneLine + "&token=" + token))
	return strings.ToUpper(base64.URLEncoding.EncodeToString(sum[:]))
}

// signed reports whether the signature headers match the body. The timestamp
// must be a number; the server does not compare it with its clock.
func (d *Double) signed(header http.Header, body []byte) bool {
	platform := header.Get(d.options.HeaderPrefix + headerPlatform)
	timestamp := header.Get(d.options.HeaderPrefix + headerTimestamp)
	given := header.Get(d.options.HeaderPrefix + headerSign)
	if _, err := strconv.ParseInt(timestamp, 10, 64); err != nil {
		return false
	}
	token, known := d.tokenOf(platform)
	return known && given == sign(timestamp, string(body), token)
}

// signTo signs a callback with the platform's token.
func (d *Double) signTo(header http.Header, platform string, body []byte, now time.Time, bad bool) {
	timestamp := strconv.FormatInt(now.UnixMilli(), 10)
	token, _ := d.tokenOf(platform)
	if bad {
		token += "-not"
	}
	header.Set(d.options.HeaderPrefix+headerPlatform, platform)
	header.Set(d.options.HeaderPrefix+headerTimestamp, timestamp)
	header.Set(d.options.HeaderPrefix+headerSign, sign(timestamp, string(body), token))
}
