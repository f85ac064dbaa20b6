package docs

import (
	"regexp"
	"strings"
	"testing"
)

// paragraph separates the texts of a page that are read as one: paragraphs, blocks of code and rows of tables.
var paragraph = regexp.MustCompile(`\n\n|\n\|`)

// A Trigger that is deleted with the Broker is restored only with its part, and the judge or the notifications
// stop until then.
func TestWhoDeletesAllTriggersAppliesEachPartThatHasSome(t *testing.T) {
	found := 0
	for _, file := range append(tracked(t, "docs/*.md"), "hack/apply.sh") {
		for _, text := range paragraph.Split(read(t, file), -1) {
			if !strings.Contains(text, "brokers,triggers --all") {
				continue
			}
			found++
			for _, part := range []string{"config/judge", "config/notify"} {
				if !strings.Contains(text, part) {
					t.Errorf("%s does not name %s beside:\n%s", file, part, strings.TrimSpace(text))
				}
			}
			// The Trigger of a judge of your own is in no part. A sentence below a block of commands names it.
			if !strings.Contains(text, "your own") && !strings.Contains(text, "make apply OVERLAY=") {
				t.Errorf("%s does not name Triggers of your own beside:\n%s", file, strings.TrimSpace(text))
			}
		}
	}
	if found < 7 {
		t.Errorf("only %d texts delete Triggers", found)
	}
}
