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
	// recheck is how often a known address is looked up again. A change is
	// told by a watch; this is for a watch that missed one.
	recheck = 30 * time.Second
	// firstLookup and lastLookup bound the time to the next try to find an
	// address where there is none.
	firstLookup = time.Second
	lastLookup  = 30 * time.Second
)

// Endpoint is an address that takes events.
type Endpoint struct {
	// URL is absolute.
	URL string
	// CACerts are certificates in PEM that are trusted beside those of the
	// system; empty where the cluster does not encrypt its inner transport.
	CACerts string
}

// Resolve finds the address of the Broker. It is called by one goroutine.
type Resolve func(context.Context) (Endpoint, error)

// Target knows where events go. That there is no such place (no Broker yet, no
// Knative Eventing) is a state like another one and not an error of the process.
type Target struct {
	resolve Resolve
	clock   clock.Clock
	poked   chan struct{}

	mu  sync.Mutex
	now lookup
}

// lookup is what the last look-up found: an outlet or the error why there is
// none. Before the first one it has neither. changed is closed by the next
// that finds something else.
type lookup struct {
	outlet  *outlet
	err     error
	changed chan struct{}
}

// NewTarget returns a target that is found by resolve.
func NewTarget(c clock.Clock, resolve Resolve) *Target {
	return &Target{
		resolve: resolve,
		clock:   c,
		poked:   make(chan struct{}, 1),
		now:     lookup{changed: make(chan struct{})},
	}
}

// Poke says that a look-up may find something else now. It never blocks.
func (t *Target) Poke() {
	select {
	case t.poked <- struct{}{}:
	default: // a look-up that has not begun covers this one too
	}
}

// run keeps the target current until ctx ends. It logs each change once.
func (t *Target) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = firstLookup, lastLookup, 2
	for ctx.Err() == nil {
		next := recheck
		if t.lookUp(ctx) {
			pause.Reset()
		} else {
			next = pause.NextBackOff()
		}
		timer := t.clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-t.poked:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// lookUp resolves once and reports whether there is an address.
func (t *Target) lookUp(ctx context.Context) bool {
	was := t.get()
	next := t.find(ctx, was.outlet)
	if next.outlet != was.outlet && was.outlet != nil {
		was.outlet.close()
	}
	if next.outlet == was.outlet && errorText(next.err) == errorText(was.err) {
		return next.outlet != nil
	}
	t.set(next)
	if next.err != nil {
		logging.FromContext(ctx).Warnw("No Broker to send events to; they wait", "error", next.err)
		return false
	}
	logging.FromContext(ctx).Infow("Events go to the Broker", "url", next.outlet.endpoint.URL)
	return true
}

// find keeps the outlet that it is given when the address is still the same,
// and with it the connections.
func (t *Target) find(ctx context.Context, was *outlet) lookup {
	endpoint, err := t.resolve(ctx)
	if err != nil {
		return lookup{err: err}
	}
	if was != nil && was.endpoint == endpoint {
		return lookup{outlet: was}
	}
	out, err := newOutlet(endpoint)
	return lookup{outlet: out, err: err}
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
	return t.now
}

func (t *Target) set(next lookup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.now.changed)
	next.changed = make(chan struct{})
	t.now = next
}

// current returns the outlet, or the error why there is none. It waits only
// for the first look-up, at most until ctx ends.
func (t *Target) current(ctx context.Context) (*outlet, error) {
	now := t.get()
	if now.outlet == nil && now.err == nil {
		select {
		case <-now.changed:
			now = t.get()
		case <-ctx.Done():
			return nil, &NoBrokerError{Err: context.Cause(ctx)}
		}
	}
	if now.err != nil {
		return nil, &NoBrokerError{Err: now.err}
	}
	return now.outlet, nil
}

// wait returns the outlet as soon as there is one, or an error when ctx ends
// before.
func (t *Target) wait(ctx context.Context) (*outlet, error) {
	for {
		now := t.get()
		if now.outlet != nil {
			return now.outlet, nil
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return nil, &NoBrokerError{Err: errors.Join(now.err, context.Cause(ctx))}
		}
	}
}

// NoBrokerError says that there is no address to send to now.
type NoBrokerError struct {
	// Err is why.
	Err error
}

func (e *NoBrokerError) Error() string { return fmt.Sprintf("no broker: %v", e.Err) }

// Unwrap returns why.
func (e *NoBrokerError) Unwrap() error { return e.Err }
