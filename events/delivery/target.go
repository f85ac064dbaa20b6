package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"
)

const (
	// refreshInterval is the time between two lookups of a known address. A watch
	// triggers lookups; the interval covers missed changes.
	refreshInterval = 30 * time.Second
	// minRetryInterval and maxRetryInterval limit the time between two lookups
	// while there is no address.
	minRetryInterval = time.Second
	maxRetryInterval = 30 * time.Second
)

// Endpoint is the address of a Broker.
type Endpoint struct {
	// URL is an absolute URL.
	URL string
	// CACerts are certificates in PEM that are trusted in addition to those of
	// the system. Empty if the cluster does not encrypt internal traffic.
	CACerts string
	// TokenFile holds the token that each request carries, for a Broker that
	// authenticates its senders. Empty if it does not.
	TokenFile string
}

// Resolve looks up the address of the Broker. Only one goroutine calls it.
type Resolve func(context.Context) (Endpoint, error)

// Target holds the current address of the Broker. A missing Broker or a missing
// Knative Eventing is a normal state and not an error of the process.
type Target struct {
	resolve Resolve
	clock   clock.Clock
	refresh chan struct{}

	mu      sync.Mutex
	current lookup
}

// lookup is the result of the last lookup: a client or an error. Before the first
// lookup it has neither. The next lookup with another result closes changed.
type lookup struct {
	client  *client
	err     error
	changed chan struct{}
}

// NewTarget returns a target whose address resolve returns.
func NewTarget(c clock.Clock, resolve Resolve) *Target {
	return &Target{
		resolve: resolve,
		clock:   c,
		refresh: make(chan struct{}, 1),
		current: lookup{changed: make(chan struct{})},
	}
}

// Refresh triggers a lookup. It never blocks.
func (t *Target) Refresh() {
	select {
	case t.refresh <- struct{}{}:
	default: // a lookup is pending already
	}
}

// run looks the address up until ctx ends. It logs each change once.
func (t *Target) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = minRetryInterval, maxRetryInterval, 2
	for ctx.Err() == nil {
		next := refreshInterval
		if t.lookUp(ctx) {
			pause.Reset()
		} else {
			next = pause.NextBackOff()
		}
		timer := t.clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-t.refresh:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// lookUp resolves the address once and reports whether there is one.
func (t *Target) lookUp(ctx context.Context) bool {
	old := t.get()
	next := t.find(ctx, old.client)
	if next.client != old.client && old.client != nil {
		old.client.close()
	}
	if next.client == old.client && errorText(next.err) == errorText(old.err) {
		return next.client != nil
	}
	t.set(next)
	if next.err != nil {
		logging.FromContext(ctx).Warnw("No Broker; events stay queued", "error", next.err)
		return false
	}
	logging.FromContext(ctx).Infow("Sending events to the Broker", "url", next.client.endpoint.URL)
	return true
}

// find resolves the address. If it is unchanged, the old client and its
// connections are kept.
func (t *Target) find(ctx context.Context, old *client) lookup {
	endpoint, err := t.resolve(ctx)
	if err != nil {
		return lookup{err: err}
	}
	if old != nil && old.endpoint == endpoint {
		return lookup{client: old}
	}
	c, err := newClient(endpoint)
	return lookup{client: c, err: err}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (t *Target) get() lookup {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

func (t *Target) set(next lookup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.current.changed)
	next.changed = make(chan struct{})
	t.current = next
}

// client returns the current client or the error of the last lookup. It waits
// only for the first lookup, at most until ctx ends.
func (t *Target) client(ctx context.Context) (*client, error) {
	last := t.get()
	if last.client == nil && last.err == nil {
		select {
		case <-last.changed:
			last = t.get()
		case <-ctx.Done():
			return nil, &NoBrokerError{Err: context.Cause(ctx)}
		}
	}
	if last.err != nil {
		return nil, &NoBrokerError{Err: last.err}
	}
	return last.client, nil
}

// wait waits for a client and returns it, or an error if ctx ends first.
func (t *Target) wait(ctx context.Context) (*client, error) {
	for {
		last := t.get()
		if last.client != nil {
			return last.client, nil
		}
		select {
		case <-last.changed:
		case <-ctx.Done():
			return nil, &NoBrokerError{Err: errors.Join(last.err, context.Cause(ctx))}
		}
	}
}

// NoBrokerError reports that the address of the Broker is not known.
type NoBrokerError struct {
	// Err is the cause.
	Err error
}

func (e *NoBrokerError) Error() string { return fmt.Sprintf("no broker: %v", e.Err) }

// Unwrap returns the cause.
func (e *NoBrokerError) Unwrap() error { return e.Err }
