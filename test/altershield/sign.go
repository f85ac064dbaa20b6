package altershield

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The ends of the signature headers.
const (
	headerPlatform  = "Platform"
	headerTimestamp = "Timestamp"
	headerSign      = "Sign"
)

// Signature says whether the double checks signatures.
type Signature string

// The modes.
const (
	// Enforce answers 102 to a call that is not signed, as the server does.
	Enforce Signature = "enforce"
	// Skip believes everybody.
	Skip Signature = "skip"
)

// sign is written anew here, and not taken from the client: two that share a
// mistake would agree.
func sign(timestamp, body, token string) string {
	oneLine := strings.NewReplacer("\r", "", "\n", "").Replace(body)
	sum := sha256.Sum256([]byte(timestamp + oneLine + "&token=" + token))
	return strings.ToUpper(base64.URLEncoding.EncodeToString(sum[:]))
}

// signed says whether a call's headers fit its body. The server demands a
// number as timestamp and does not compare it with its clock.
func (d *Double) signed(header http.Header, body []byte) bool {
	platform := header.Get(d.options.HeaderPrefix + headerPlatform)
	timestamp := header.Get(d.options.HeaderPrefix + headerTimestamp)
	given := header.Get(d.options.HeaderPrefix + headerSign)
	if _, err := strconv.ParseInt(timestamp, 10, 64); err != nil {
		return false
	}
	token, known := d.options.Tokens[platform]
	return known && given == sign(timestamp, string(body), token)
}

// signTo signs a callback with the platform's token.
func (d *Double) signTo(header http.Header, platform string, body []byte, now time.Time, bad bool) {
	timestamp := strconv.FormatInt(now.UnixMilli(), 10)
	token := d.options.Tokens[platform]
	if bad {
		token += "-not"
	}
	header.Set(d.options.HeaderPrefix+headerPlatform, platform)
	header.Set(d.options.HeaderPrefix+headerTimestamp, timestamp)
	header.Set(d.options.HeaderPrefix+headerSign, sign(timestamp, string(body), token))
}
