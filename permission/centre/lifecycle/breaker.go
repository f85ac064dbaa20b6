package lifecycle

import (
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// tripAfter is how many calls in a row fail before a provider rests, and
	// rest for how long; then one call at a time shows whether it is back.
	tripAfter = 10
	rest      = 15 * time.Second
)

// Breakers spare each provider that is down, in this replica.
type Breakers struct {
	mu  sync.Mutex
	all map[string]*breaker
}

type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	mu     sync.Mutex
	opened time.Time
}

func (b *Breakers) of(provider string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*breaker{}
	}
	if b.all[provider] == nil {
		made := &breaker{}
		made.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name: provider, Timeout: rest, MaxRequests: 1,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
			OnStateChange: func(_ string, _, to gobreaker.State) {
				if to == gobreaker.StateOpen {
					made.mu.Lock()
					made.opened = time.Now()
					made.mu.Unlock()
				}
			},
		})
		b.all[provider] = made
	}
	return b.all[provider]
}

// Rest says for how long the provider is not to be called.
func (b *Breakers) Rest(provider string) time.Duration {
	one := b.of(provider)
	if one.State() != gobreaker.StateOpen {
		return 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return max(time.Until(one.opened.Add(rest)), 100*time.Millisecond)
}

// Do calls unless the provider rests.
func (b *Breakers) Do(provider string, call func() bool) bool {
	done, err := b.of(provider).Allow()
	if err != nil {
		return false
	}
	if call() {
		done(nil)
	} else {
		done(errNothing)
	}
	return true
}
