package text

import "strings"

// OneLine returns s on one line: with one space for each sequence of line feeds, tabs and other spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
