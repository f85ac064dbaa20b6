package server

import "sync"

// Notifier notifies waiting calls of changes.
type Notifier struct {
	mu          sync.Mutex
	subscribers map[string]map[chan struct{}]bool
}

// NewNotifier returns a Notifier.
func NewNotifier() *Notifier { return &Notifier{subscribers: map[string]map[chan struct{}]bool{}} }

// Subscribe returns a channel that receives a value after notifications of the key;
// several notifications may be merged into one. The caller must call unsubscribe.
func (h *Notifier) Subscribe(key string) (changed <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers[key] == nil {
		h.subscribers[key] = map[chan struct{}]bool{}
	}
	h.subscribers[key][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.subscribers[key], c); len(h.subscribers[key]) == 0 {
			delete(h.subscribers, key)
		}
	}
}

// Notify notifies the subscribers of the key.
func (h *Notifier) Notify(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subscribers[key] {
		signal(c)
	}
}

// NotifyAll notifies all subscribers.
func (h *Notifier) NotifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.subscribers {
		for c := range all {
			signal(c)
		}
	}
}

// Count returns the number of subscribers.
func (h *Notifier) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, all := range h.subscribers {
		n += len(all)
	}
	return n
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
