package altershield

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/util/wait"
)

// scriptedServer returns the answer that was set, and counts attempts. Status 0 is a
// refused connection.
type scriptedServer struct {
	attempts atomic.Int64
	status   atomic.Int64
	body     atomic.Pointer[string]
}

func (s *scriptedServer) setAnswer(status int, body string) {
	s.status.Store(int64(status))
	s.body.Store(&body)
}

func (s *scriptedServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.attempts.Add(1)
	if s.status.Load() == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(s.status.Load()), Body: io.NopCloser(strings.NewReader(*s.body.Load()))}, nil
}

func (s *scriptedServer) client(pause time.Duration, options ...Option) *Client {
	return New(Config{BaseURL: "http://x", QPS: 1000, BreakerFailures: 3, BreakerPause: pause},
		append(options, WithTransport(s), onlyOnce())...)
}

func TestOnlyAnUnreachableServerOpensTheBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		opens  bool
	}{
		"no connection":     {0, "", true},
		"502":               {http.StatusBadGateway, "bad gateway", true},
		"a page of a proxy": {http.StatusOK, "<html>", true},
		"901":               {http.StatusOK, `{"success":false,"resultCode":"901"}`, true},
		"101":               {http.StatusOK, `{"success":false,"resultCode":"101"}`, false},
		"102":               {http.StatusOK, `{"success":false,"resultCode":"102"}`, false},
		"103":               {http.StatusOK, `{"success":false,"resultCode":"103"}`, false},
		"a success":         {http.StatusOK, `{"success":true,"domain":{}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scriptedServer{}
			server.setAnswer(tc.status, tc.body)
			c := server.client(time.Hour)
			for range 3 {
				if c.BreakerOpen() {
					t.Fatal("the breaker opened before the third failure")
				}
				_, _ = c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"}) // only the breaker is checked
			}
			if c.BreakerOpen() != tc.opens {
				t.Errorf("open: %t", c.BreakerOpen())
			}
			before := server.attempts.Load()
			_, err := c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"})
			if IsBreakerOpen(err) != tc.opens || (server.attempts.Load() > before) == tc.opens {
				t.Errorf("the next call ended in %v after %d attempts", err, server.attempts.Load()-before)
			}
			if tc.opens && (MayHaveTakenEffect(err) || !strings.Contains(err.Error(), "altershield retrieveChangeCheck: ")) {
				t.Errorf("the error does not name the action, or says that the call was sent: %v", err)
			}
		})
	}
}

func TestCanceledCallsDoNotOpenTheBreaker(t *testing.T) {
	server := &scriptedServer{}
	server.setAnswer(0, "")
	c := server.client(time.Hour)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_ = c.CloseOrder(canceled, CloseOrder{OrderID: "o"}) // only the breaker is checked
	}
	if c.BreakerOpen() {
		t.Error("the breaker is open")
	}
}

func TestTheBreakerClosesWhenTheServerIsReachableAgain(t *testing.T) {
	reader := metric.NewManualReader()
	server := &scriptedServer{}
	server.setAnswer(0, "")
	c := server.client(20*time.Millisecond, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	call := func() error { return c.CloseOrder(t.Context(), CloseOrder{OrderID: "o"}) }
	for range 3 {
		_ = call() // only the breaker is checked
	}
	// The open state is too short to observe; the metrics below count it.
	halfOpen := func() {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return !c.BreakerOpen(), nil
		})
		if err != nil {
			t.Fatal("the breaker stays open:", err)
		}
	}
	halfOpen() // one call is allowed
	if err := call(); err == nil || IsBreakerOpen(err) {
		t.Errorf("the call while half-open ended in %v", err)
	}
	server.setAnswer(http.StatusOK, `{"success":true}`)
	halfOpen()
	for range 5 {
		if err := call(); err != nil {
			t.Errorf("call a reachable server: %v", err)
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

// A request need not follow the pause: after the last release, no call is made.
func TestTheScrapeOfAnIdleBreakerIsHalfOpenAfterThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		server := &scriptedServer{} // refuses the connection
		c := server.client(time.Minute, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		scraped := func(want ...int64) {
			t.Helper()
			if diff := cmp.Diff(want, scrapedStates(t, reader)); diff != "" {
				t.Error("states (-want +got):", diff)
			}
		}
		scraped(0)
		for range 3 {
			_ = c.CloseOrder(t.Context(), CloseOrder{OrderID: "o"}) // only the breaker is checked
		}
		scraped(2)
		<-time.After(time.Minute + time.Second)
		scraped(1)
		c.Close() // a replaced client has no state
		scraped()
	})
}

func scrapedStates(t *testing.T, reader metric.Reader) (states []int64) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "breakwater_altershield_breaker_state" {
				continue
			}
			for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
				states = append(states, p.Value)
			}
		}
	}
	return states
}

// A judge that is not AlterShield may not have resubmit.
func TestAServerWithoutResubmitDoesNotOpenTheBreaker(t *testing.T) {
	s := &scriptedServer{}
	s.setAnswer(http.StatusNotFound, "not found")
	c := s.client(time.Hour)
	for range 5 {
		if err := c.Resubmit(t.Context(), Resubmit{OrderID: "o", NodeID: "n"}); err == nil || IsNotBegun(err) {
			t.Errorf("got %v", err)
		}
	}
	if c.BreakerOpen() {
		t.Error("the breaker is open, so no verdict can be retrieved")
	}
	s.setAnswer(http.StatusBadGateway, "bad gateway")
	for range 3 {
		_ = c.Resubmit(t.Context(), Resubmit{OrderID: "o", NodeID: "n"})
	}
	if !c.BreakerOpen() {
		t.Error("a resubmit that is not answered does not open the breaker")
	}
}
