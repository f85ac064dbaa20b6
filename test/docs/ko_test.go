package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ko decodes and encodes each manifest. Its encoder (go.yaml.in/yaml/v4 before 4.0.0) breaks a line
// of a folded text (>-) at the first space after 80 characters. If the line is indented further
// than the first, the break becomes a part of the text, and within a string it is an error in CEL.
func TestKoBreaksNoStringOfCEL(t *testing.T) {
	folded := regexp.MustCompile(`^ *-? *(expression|messageExpression): >-$`)
	celString := regexp.MustCompile(`'[^']*'`)
	expressions := 0
	for _, file := range tracked(t, "config/*.yaml") {
		base := -1
		for i, line := range strings.Split(read(t, file), "\n") {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			switch {
			case folded.MatchString(line):
				expressions++
				base = 0
			case base == 0:
				base = indent
			case base > 0 && indent < base:
				base = -1
			case base > 0 && indent > base && slices.ContainsFunc(celString.FindAllStringIndex(line, -1), func(at []int) bool { return strings.LastIndex(line[:at[1]], " ") > max(80, at[0]) }):
				t.Errorf("%s:%d: ko would break a string of this line: indent it like the first line of the expression", file, i+1)
			}
		}
	}
	if expressions < 50 {
		t.Errorf("%d expressions found", expressions)
	}
}
