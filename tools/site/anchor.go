package main

import (
	"regexp"
	"strings"
)

var notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor returns the id that GitHub gives a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
