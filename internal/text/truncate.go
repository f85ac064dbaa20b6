// Package text shortens texts to the limits of fields, joins them to one line, and
// quotes them for a shell.
package text

import (
	"strings"
	"unicode/utf8"
)

// Truncate returns s as valid UTF-8 of at most limit bytes. It keeps only whole
// characters, because a part of one would make the object invalid.
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
