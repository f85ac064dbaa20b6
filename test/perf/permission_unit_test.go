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
	text := permissions{Bare: milli(1000, 1200, 1100), Authorized: milli(1900, 1500, 1400),
		BareAnnounced: milli(1000, 1100, 1200), Announced: milli(1300, 1350, 1500), Server: milli(90, 70, 80),
		Rates: map[string]applicationRates{"sqlite": {737, 2206, 1227}}, Image: 7_340_000}.markdown()
	for _, line := range []string{
		"| start with the announced address, median | 1100 ms | 1350 ms, 250 ms more |",
		"| start with the address in the status (default), median | 1100 ms | 1500 ms, 400 ms more |", "| the same, p90 | 1200 ms | 1900 ms, 700 ms more |",
		"| call to the init-action-server within the start, median |  | 80 ms |",
		"| applications per second, permission centre with sqlite | 737 | 2206 in the process, 3.0 × bare; 1227 over HTTP, 1.7 × bare |",
		"| image of init-action-client |  | 7.3 MB |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}

func TestTheRatesOfTheBenchmarkAreRead(t *testing.T) {
	rates, err := parseRates(`goos: linux
BenchmarkApplications/sqlite-2         	       1	4125219136 ns/op	       737.4 bare/s	         2.992 engine/bare	      2206 engine/s	         1.664 http/bare	      1227 http/s
BenchmarkApplications/postgres-2       	       3	26548924578 ns/op	       146.3 bare/s	         2.689 engine/bare	       393.5 engine/s	         1.906 http/bare	       278.9 http/s
PASS`)
	if err != nil || len(rates) != 2 || rates["sqlite"] != (applicationRates{737.4, 2206, 1227}) || rates["postgres"] != (applicationRates{146.3, 393.5, 278.9}) {
		t.Errorf("%v %v", rates, err)
	}
	if _, err := parseRates("PASS"); err == nil {
		t.Error("an output without rates is accepted")
	}
}
