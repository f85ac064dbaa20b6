package lifecycle

import (
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// The breaker of a provider opens after tripAfter consecutive failures, for
	// openTimeout. Then one call probes the provider.
	tripAfter   = 10
	openTimeout = 15 * time.Second
)

// Breakers has a circuit breaker for each provider, in this replica.
type Breakers struct {
	mu  sync.Mutex
	all map[string]*breaker
}

type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	mu     sync.Mutex
	opened time.Time
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
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			OnStateChange: func(_ string, _, to gobreaker.State) {
				if to == gobreaker.StateOpen {
					created.mu.Lock()
					created.opened = time.Now()
					created.mu.Unlock()
				}
			},
		})
		b.all[provider] = created
	}
	return b.all[provider]
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
		done(errUnchanged)
	}
	return true
}
