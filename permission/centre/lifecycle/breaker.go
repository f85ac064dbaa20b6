package lifecycle

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// The breaker of a provider opens after tripAfter consecutive failures, for openTimeout. Then one call
	// probes the provider. A call that the provider throttles is no failure here: the provider is reachable.
	tripAfter   = 10
	openTimeout = 15 * time.Second
)

// errCallFailed reports a failed call to a circuit breaker.
var errCallFailed = errors.New("the call failed")

// Breakers has a circuit breaker for each provider, in this replica.
type Breakers struct {
	mu  sync.Mutex
	all map[string]*breaker
}

type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	mu sync.Mutex
	// opened is when the breaker opened, down when it first opened after it was closed.
	opened, down time.Time
}

func (b *Breakers) get(provider string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*breaker{}
	}
	if b.all[provider] == nil {
		created := &breaker{}
		created.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name: provider, Timeout: openTimeout, MaxRequests: 1,
			ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			OnStateChange: func(_ string, _, to gobreaker.State) { created.changed(to, time.Now()) },
		})
		b.all[provider] = created
	}
	return b.all[provider]
}

func (b *breaker) changed(to gobreaker.State, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch to {
	case gobreaker.StateOpen:
		if b.opened = now; b.down.IsZero() {
			b.down = now
		}
	case gobreaker.StateClosed:
		b.down = time.Time{}
	case gobreaker.StateHalfOpen:
	}
}

// DownSince returns when the breaker opened after the last successful call; zero if it
// is closed.
func (b *Breakers) DownSince(provider string) time.Time {
	br := b.get(provider)
	br.mu.Lock()
	defer br.mu.Unlock()
	return br.down
}

// OpenFor returns how long the breaker stays open; zero if it is closed.
func (b *Breakers) OpenFor(provider string) time.Duration {
	br := b.get(provider)
	if br.State() != gobreaker.StateOpen {
		return 0
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	return max(time.Until(br.opened.Add(openTimeout)), 100*time.Millisecond)
}

// Do runs call unless the breaker is open. call reports success.
func (b *Breakers) Do(provider string, call func() bool) bool {
	done, err := b.get(provider).Allow()
	if err != nil {
		return false
	}
	if call() {
		done(nil)
	} else {
		done(errCallFailed)
	}
	return true
}
