package docs

import (
	"strings"
	"testing"
)

// A row with fewer cells has its values below the wrong headings.
func TestTheRowsOfATableHaveACellForEachHeading(t *testing.T) {
	for _, page := range pages(t) {
		text := codeFence.ReplaceAllStringFunc(read(t, page), func(code string) string {
			return strings.Repeat("\n", strings.Count(code, "\n"))
		})
		want := 0
		for i, line := range strings.Split(text, "\n") {
			row := strings.TrimSpace(line)
			if !strings.HasPrefix(row, "|") {
				want = 0
				continue
			}
			cells := strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") - 1
			if want == 0 {
				want = cells
			}
			if cells != want {
				t.Errorf("%s:%d: %d cells, want %d", page, i+1, cells, want)
			}
		}
	}
}
