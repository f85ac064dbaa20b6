package main

import (
	"strings"
	"testing"
	"time"
)

func TestARecordingIsAnAsciinemaCast(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	c := newCast(&out, func() time.Time { return now })
	for _, text := range []string{"a\n", "<b>"} {
		now = now.Add(1500 * time.Millisecond)
		if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write returned %d, %v", n, err)
		}
	}
	const want = `{"version":2,"width":140,"height":32,"title":"Breakwater","idle_time_limit":3}
[1.5,"o","a\r\n"]
[3,"o","<b>"]
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
