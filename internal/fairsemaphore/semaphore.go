// Package fairsemaphore limits concurrent work, and shares the places between keys, such as namespaces.
//
// A free place goes to the waiting key with the fewest places; of several, to the one that released a place least
// recently. The last free place is kept for a key without a place, which would otherwise wait until work of another
// key ends.
package fairsemaphore

import (
	"context"
	"slices"
	"sync"
)

// Semaphore has a number of places. It is safe for concurrent use.
type Semaphore struct {
	mu   sync.Mutex
	free int
	// shares has the keys with a place or a waiter; the one that released a place last is at the end.
	shares []*share
}

// share has the places and the waiters of a key.
type share struct {
	key    string
	places int
	// waiting has a channel for each waiter, in order. It is closed when the waiter gets a place.
	waiting []chan struct{}
}

// New returns a Semaphore with that many places.
func New(places int) *Semaphore { return &Semaphore{free: places} }

// Acquire waits for a place, until ctx ends. Without an error, Release must be called with the same key.
func (s *Semaphore) Acquire(ctx context.Context, key string) error {
	ready := s.join(key)
	select {
	case <-ready:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		s.leave(key, ready)
		return err
	}
	return nil
}

// Release returns a place.
func (s *Semaphore) Release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(s.index(key))
}

// join adds a waiter. The channel that it returns is closed when the waiter has a place.
func (s *Semaphore) join(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(key)
	if i < 0 {
		i = len(s.shares)
		s.shares = append(s.shares, &share{key: key})
	}
	ready := make(chan struct{})
	s.shares[i].waiting = append(s.shares[i].waiting, ready)
	s.admit()
	return ready
}

// leave removes a waiter, or returns its place.
func (s *Semaphore) leave(key string, ready chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(key)
	one := s.shares[i]
	at := slices.Index(one.waiting, ready)
	if at < 0 {
		s.release(i)
		return
	}
	one.waiting = slices.Delete(one.waiting, at, at+1)
	if one.idle() {
		s.shares = slices.Delete(s.shares, i, i+1)
	}
}

func (s *Semaphore) index(key string) int {
	return slices.IndexFunc(s.shares, func(one *share) bool { return one.key == key })
}

func (s *Semaphore) release(i int) {
	one := s.shares[i]
	one.places--
	s.free++
	s.shares = slices.Delete(s.shares, i, i+1)
	if !one.idle() {
		s.shares = append(s.shares, one)
	}
	s.admit()
}

func (one *share) idle() bool { return one.places == 0 && len(one.waiting) == 0 }

// admit gives free places to waiters.
func (s *Semaphore) admit() {
	for next := s.next(); next != nil; next = s.next() {
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		next.places++
		s.free--
	}
}

// next returns the share that gets the next place, nil if there is none.
func (s *Semaphore) next() (next *share) {
	for _, one := range s.shares {
		allowed := s.free > 1 || s.free == 1 && one.places == 0
		if allowed && len(one.waiting) > 0 && (next == nil || one.places < next.places) {
			next = one
		}
	}
	return next
}
