package checkedclock

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestClocksThatMayDiffer(t *testing.T) {
	date := time.Unix(1700000000, 0)
	at := func(seconds float64) time.Time { return date.Add(time.Duration(seconds * float64(time.Second))) }
	for name, tc := range map[string]struct {
		sent, received float64
		want           bool
	}{
		"the same":                              {0.2, 0.3, false},
		"as far ahead as allowed":               {4.9, 5, false},
		"as far behind as allowed":              {-4, -3.9, false},
		"too far ahead":                         {5, 5.1, true},
		"too far behind":                        {-4.1, -4, true},
		"the slowest answer, equal clocks":      {-1, 2.9, false},
		"ahead, or the answer was slow to come": {3.5, 5.5, true},
		"an hour":                               {3600, 3600, true},
		"an hour in the other direction":        {-3600, -3600, true},
	} {
		if got := mayDiffer(at(tc.sent), at(tc.received), date, 5*time.Second); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAClockIsWrongUntilACheckSucceeds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Unix(1700000000, 0).UTC().Format(http.TimeFormat))
	}))
	fake := testingclock.NewFakePassiveClock(time.Unix(1700000000, 0))
	c := &Clock{PassiveClock: fake, Client: server.Client(), URL: server.URL, Skew: 5 * time.Second}
	check := func(seconds int64, want bool) {
		t.Helper()
		fake.SetTime(time.Unix(1700000000+seconds, 0))
		if err := c.Check(t.Context()); (err != nil) != want || (c.SkewError() != nil) != want {
			t.Errorf("%d s: %v", seconds, err)
		}
	}
	check(1, false)
	check(60, true)
	server.Close()
	if err := c.Check(context.Background()); err == nil {
		t.Error("an unreachable server returned a time")
	}
	if c.SkewError() == nil {
		t.Error("a missing answer reset the error")
	}
}
