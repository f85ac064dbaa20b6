package perf

import (
	"strings"
	"testing"
	"time"
)

func TestTheTableOfPermissionsShowsHowMuchLaterAPodStarts(t *testing.T) {
	milli := func(all ...int) (out []time.Duration) {
		for _, n := range all {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	text := permissions{Bare: milli(1000, 1200, 1100), Authorized: milli(1900, 1500, 1400), Server: milli(90, 70, 80),
		Rates: map[string]float64{"sqlite": 321.4, "postgres": 123.4}, Image: 7_340_000}.markdown()
	for _, line := range []string{
		"| start, median | 500 ms more | 1100 ms | 1500 ms, 400 ms more |", "| start, p90 |  | 1200 ms | 1900 ms, 700 ms more |",
		"| call to the init-action-server within the start, median |  |  | 80 ms |", "| applications per second, permission centre with sqlite |  |  | 321 |",
		"| image of init-action-client | 10 MB |  | 7.3 MB |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}
