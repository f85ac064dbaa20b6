package rollback

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The API server replaces half a character by a longer one. A message that is then too
// long is rejected with the whole write.
func TestTheMessageOfARollbackIsTruncatedBetweenRunes(t *testing.T) {
	for extra := range 3 {
		decision := Decision{Message: strings.Repeat("a", extra) + strings.Repeat("失", maxMessage)}
		got := newRollback(Situation{}, decision, Target{Version: "good"}).Message
		if !utf8.ValidString(got) || len(got) > maxMessage || len(got) < maxMessage-2 {
			t.Errorf("%d bytes that end in %q", len(got), got[len(got)-4:])
		}
	}
}
