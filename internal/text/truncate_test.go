package text

import "testing"

func TestTruncateKeepsWholeCharacters(t *testing.T) {
	for _, tc := range []struct {
		in    string
		limit int
		want  string
	}{
		{"web", 3, "web"},
		{"web", 2, "we"},
		{"web", 0, ""},
		{"web", -1, ""},
		{"", 0, ""},
		{"发布失败", 12, "发布失败"},
		{"发布失败", 11, "发布失"},
		{"发布失败", 10, "发布失"},
		{"发布失败", 9, "发布失"},
		{"发布", 2, ""},
		{"a😀", 4, "a"},
		{"a\xffb", 9, "a\uFFFDb"},
		{"a\xffb", 3, "a"}, // the replacement of an invalid byte is a whole character too
		{"a\xe5\x8f", 9, "a\uFFFD"},
	} {
		if got := Truncate(tc.in, tc.limit); got != tc.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
		}
	}
}
