package store

import (
	"strings"
	"testing"
)

const earlierExport = `{"format":"permissioncentre/1"}
{"table":"pace","values":{"provider":"p","next":1}}
{"table":"pace","values":{"provider":"q","next":2}}
`

// Otherwise nothing would revoke the grants of the missing lines.
func TestAnIncompleteExportIsNotImported(t *testing.T) {
	s := open(t)
	if err := s.Import(t.Context(), strings.NewReader(earlierExport)); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(export(t, s), "\n")
	lines := strings.SplitAfter(text, "\n")
	header, rows, end := lines[0], lines[1:3], strings.Join(lines[3:], "")
	inputs := map[string]string{
		"a missing row":       header + rows[0] + end,
		"a further row":       header + rows[0] + rows[1] + strings.Replace(rows[1], "q", "r", 1) + end,
		"a row after the end": header + rows[0] + end + "\n" + rows[1],
		"two exports":         text + "\n" + text,
	}
	for n := range len(text) {
		inputs[text[:n]] = text[:n]
	}
	deleteRows(t, s)
	for name, input := range inputs {
		if err := s.Import(t.Context(), strings.NewReader(input)); err == nil {
			t.Errorf("imported without an error: %s", name)
			deleteRows(t, s)
		}
	}
	if err := s.Import(t.Context(), strings.NewReader(text)); err != nil {
		t.Error(err)
	}
}
