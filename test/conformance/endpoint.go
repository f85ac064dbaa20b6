package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions/callback"
)

// maxCallback bounds a callback's body, in bytes, as the real callback does.
const maxCallback = 1 << 20

// arrival is one callback, whatever it is worth.
type arrival struct {
	at     time.Time
	header http.Header
	body   []byte
	// auth is why it is not believed; nil when it is.
	auth error
	// said is what it says; unreadable why that cannot be told.
	said       []callback.Received
	unreadable error
}

// endpoint is where the judge calls back.
type endpoint struct {
	config altershield.Config

	mu   sync.Mutex
	came []arrival
	news chan struct{} // closed at the next arrival
}

func newEndpoint(config altershield.Config) *endpoint {
	return &endpoint{config: config, news: make(chan struct{})}
}

// ServeHTTP takes a callback as function callback does, and keeps it.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := arrival{at: time.Now(), header: r.Header}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		a.unreadable = err
	} else {
		a.body = body
		a.auth = altershield.Verify(r.Header, e.config.HeaderPrefix, e.config.Platform, body, e.config.Token, a.at, e.config.MaxSkew)
		a.said, a.unreadable = callback.Read(r.Header, body)
	}
	e.mu.Lock()
	e.came = append(e.came, a)
	close(e.news)
	e.news = make(chan struct{})
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"success":true}`) // a judge ignores the answer
}

// arrivals returns what came so far.
func (e *endpoint) arrivals() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.came)
}

// believed returns what authentic callbacks said of a node's stage.
func (e *endpoint) believed(node string, stage v1alpha1.Stage) []callback.Received {
	var out []callback.Received
	for _, a := range e.arrivals() {
		if a.auth != nil {
			continue
		}
		for _, r := range a.said {
			if r.Data.NodeID == node && r.Data.Stage == stage {
				out = append(out, r)
			}
		}
	}
	return out
}

// await returns true as soon as a node's stage was called back, and false when
// that did not happen in time.
func (e *endpoint) await(ctx context.Context, node string, stage v1alpha1.Stage, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		e.mu.Lock()
		news := e.news
		e.mu.Unlock()
		if len(e.believed(node, stage)) > 0 {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}
