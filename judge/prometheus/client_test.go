package prometheus

import (
	"strings"
	"testing"
)

func TestALongQueryOfAMessageIsCutBetweenTwoCharacters(t *testing.T) {
	begin := strings.Repeat("a", 299)
	if got := shorten(begin + "é"); got != begin+"…" {
		t.Errorf("the end is %q", got[290:])
	}
}
