package text

import (
	"regexp"
	"strings"
)

// plain is a word that a shell does not change.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// ShellQuote returns a word as it is written in a shell.
func ShellQuote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
