package server

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// tickerClock counts the tickers that were not stopped.
type tickerClock struct {
	fastClock
	open *atomic.Int32
}

type countedTicker struct {
	clock.Ticker
	open *atomic.Int32
}

func (c tickerClock) NewTicker(d time.Duration) clock.Ticker {
	c.open.Add(1)
	return countedTicker{c.fastClock.NewTicker(d), c.open}
}

func (t countedTicker) Stop() {
	t.Ticker.Stop()
	t.open.Add(-1)
}

// A later heartbeat would be in the response of another request: echo and net/http reuse what the call wrote to.
func TestHeartbeatsEndWithACallThatPanics(t *testing.T) {
	var open atomic.Int32
	w := newFixtureAt(t, tickerClock{fastClock{start: time.Now()}, &open}, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { panic("a defect") }
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+protocol.AuthorizePath, strings.NewReader(orders))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer pod")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer, err := io.ReadAll(res.Body); err != nil || len(bytes.TrimSpace(answer)) > 0 {
		t.Errorf("answer %q: %v", answer, err)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d heartbeats continue after the response", n)
	}
}
