package altershield

import "unicode/utf8"

// cut returns s with at most limit bytes, ending at a rune border.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
