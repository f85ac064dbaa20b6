// Package text fits messages of people and servers into fields that have a
// limit: of the API server's schemas, of events, of the AlterShield protocol.
package text

import (
	"strings"
	"unicode/utf8"
)

// Truncate returns s as valid UTF-8 of at most limit bytes, with whole characters:
// half of one would make the whole object invalid.
func Truncate(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
