package main

import (
	"slices"
	"strings"
	"testing"
)

func TestAPictureShowsTheLinesOfARecordingWhenTheyWereWritten(t *testing.T) {
	header := castHeader{Width: 5, Height: 3, IdleTimeLimit: 2}
	lines, frames := layout(header, []castEvent{
		{0, "\r\n"}, {0, boldOn + "title" + boldOff + "\r\n"}, {1, "123456\r\n\r\n"}, {61, "<&>"}, {62, "\r\n"},
	})
	if want := []line{{}, {"title", true}, {"12345", false}, {"6", false}, {}, {"<&>", false}}; !slices.Equal(lines, want) {
		t.Errorf("lines are %v, want %v", lines, want)
	}
	if want := []frame{{0, 2}, {1, 5}, {3, 6}, {4, 6}}; !slices.Equal(frames, want) {
		t.Errorf("frames are %v, want %v", frames, want)
	}
	var out strings.Builder
	if err := picture(&out, header, []castEvent{{0, "a\r\n"}, {2, "<&>\r\n"}}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"animation: scroll 8.00s step-end infinite", "0.000% { transform: translateY(36px); }\n25.000% { transform: translateY(18px); }",
		`<text x="12" y="14">a</text>` + "\n" + `<text x="12" y="32">&lt;&amp;&gt;</text>`,
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the picture lacks %s:\n%s", part, &out)
		}
	}
}
