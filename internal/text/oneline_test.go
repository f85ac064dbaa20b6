package text

import "testing"

func TestOneLineHasOnlySpacesBetweenWords(t *testing.T) {
	if got := OneLine(" a\r\nb\t\tc\u0085d e\n"); got != "a b c d e" {
		t.Errorf("got %q", got)
	}
}
