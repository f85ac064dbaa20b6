package altershield

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/util/wait"
)

// answers is a server that answers with what is set, and counts.
type answers struct {
	attempts atomic.Int64
	status   atomic.Int64
	body     atomic.Pointer[string]
}

func (a *answers) say(status int, body string) {
	a.status.Store(int64(status))
	a.body.Store(&body)
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.attempts.Add(1)
	if a.status.Load() == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(a.status.Load()), Body: io.NopCloser(strings.NewReader(*a.body.Load()))}, nil
}

func (a *answers) client(pause time.Duration, options ...Option) *Client {
	return New(Config{BaseURL: "http://x", QPS: 1000, BreakerFailures: 3, BreakerPause: pause},
		append(options, WithTransport(a), onlyOnce())...)
}

func TestOnlyAServerThatIsAwayOpensTheBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		opens  bool
	}{
		"no connection":     {0, "", true},
		"502":               {http.StatusBadGateway, "away", true},
		"a page of a proxy": {http.StatusOK, "<html>", true},
		"901":               {http.StatusOK, `{"success":false,"resultCode":"901"}`, true},
		"101":               {http.StatusOK, `{"success":false,"resultCode":"101"}`, false},
		"102":               {http.StatusOK, `{"success":false,"resultCode":"102"}`, false},
		"103":               {http.StatusOK, `{"success":false,"resultCode":"103"}`, false},
		"a success":         {http.StatusOK, `{"success":true,"domain":{}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{}
			a.say(tc.status, tc.body)
			c := a.client(time.Hour)
			for range 3 {
				if c.BreakerOpen() {
					t.Fatal("it opened too early")
				}
				_, _ = c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"}) // the breaker is looked at
			}
			if c.BreakerOpen() != tc.opens {
				t.Errorf("open: %t", c.BreakerOpen())
			}
			before := a.attempts.Load()
			_, err := c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"})
			if IsBreakerOpen(err) != tc.opens || (a.attempts.Load() > before) == tc.opens {
				t.Errorf("the next call ended in %v after %d attempts", err, a.attempts.Load()-before)
			}
			if tc.opens && (MayHaveReached(err) || !strings.Contains(err.Error(), "altershield retrieveChangeCheck: ")) {
				t.Errorf("the error does not say what is wrong: %v", err)
			}
		})
	}
}

func TestACallerThatGivesUpDoesNotOpenTheBreaker(t *testing.T) {
	a := &answers{}
	a.say(0, "")
	c := a.client(time.Hour)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_ = c.FinishOrder(canceled, FinishOrder{OrderID: "o"}) // the breaker is looked at
	}
	if c.BreakerOpen() {
		t.Error("it is open")
	}
}

func TestTheBreakerClosesWithoutAPersonWhenTheServerIsBack(t *testing.T) {
	reader := metric.NewManualReader()
	a := &answers{}
	a.say(0, "")
	c := a.client(20*time.Millisecond, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	call := func() error { return c.FinishOrder(t.Context(), FinishOrder{OrderID: "o"}) }
	for range 3 {
		_ = call() // the breaker is looked at
	}
	// What it was in between is told by its metrics: it does not stay open for long.
	halfOpen := func() {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return !c.BreakerOpen(), nil
		})
		if err != nil {
			t.Fatal("it stays open:", err)
		}
	}
	halfOpen() // one attempt is let through
	if err := call(); err == nil || IsBreakerOpen(err) {
		t.Errorf("the attempt ended in %v", err)
	}
	a.say(http.StatusOK, `{"success":true}`)
	halfOpen()
	for range 5 {
		if err := call(); err != nil {
			t.Errorf("the server is back: %v", err)
		}
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	changes, state := map[string]int64{}, int64(-1)
	for _, m := range data.ScopeMetrics[0].Metrics {
		if points, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breakwater_altershield_breaker_transitions_total" {
			for _, p := range points.DataPoints {
				changes[label(p.Attributes.Value("state"))] = p.Value
			}
		}
		if points, ok := m.Data.(metricdata.Gauge[int64]); ok {
			state = points.DataPoints[0].Value
		}
	}
	if diff := cmp.Diff(map[string]int64{"open": 2, "half-open": 2, "closed": 1}, changes); diff != "" || state != 0 {
		t.Errorf("state %d, changes (-want +got): %s", state, diff)
	}
}
