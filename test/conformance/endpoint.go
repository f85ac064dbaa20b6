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

// maxCallback is the maximum size of a callback's body in bytes, as in function
// callback.
const maxCallback = 1 << 20

// arrival is one callback, trusted or not.
type arrival struct {
	at     time.Time
	header http.Header
	body   []byte
	// auth is the reason why it is not trusted; nil if it is trusted.
	auth error
	// received are its verdicts; unreadable is the parse error.
	received   []callback.Received
	unreadable error
}

// endpoint receives the callbacks of the server.
type endpoint struct {
	config altershield.Config

	mu        sync.Mutex
	callbacks []arrival
	arrived   chan struct{} // closed at the next arrival
}

func newEndpoint(config altershield.Config) *endpoint {
	return &endpoint{config: config, arrived: make(chan struct{})}
}

// ServeHTTP parses a callback as function callback does, and stores it.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := arrival{at: time.Now(), header: r.Header}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		a.unreadable = err
	} else {
		a.body = body
		a.auth = altershield.Verify(r.Header, e.config.HeaderPrefix, e.config.Platform, body, e.config.Token, a.at, e.config.MaxSkew)
		a.received, a.unreadable = callback.Read(r.Header, body)
	}
	e.mu.Lock()
	e.callbacks = append(e.callbacks, a)
	close(e.arrived)
	e.arrived = make(chan struct{})
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"success":true}`) // a server ignores the answer
}

// arrivals returns the callbacks so far.
func (e *endpoint) arrivals() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.callbacks)
}

// trusted returns the verdicts of authentic callbacks for a stage of a node.
func (e *endpoint) trusted(node string, stage v1alpha1.Stage) []callback.Received {
	var out []callback.Received
	for _, a := range e.arrivals() {
		if a.auth != nil {
			continue
		}
		for _, r := range a.received {
			if r.Data.NodeID == node && r.Data.Stage == stage {
				out = append(out, r)
			}
		}
	}
	return out
}

// await waits for a trusted callback for a stage of a node. It returns false if
// none arrives in time.
func (e *endpoint) await(ctx context.Context, node string, stage v1alpha1.Stage, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		e.mu.Lock()
		arrived := e.arrived
		e.mu.Unlock()
		if len(e.trusted(node, stage)) > 0 {
			return true
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return false
		}
	}
}
