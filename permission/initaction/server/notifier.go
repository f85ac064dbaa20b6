package server

import "sync"

// Hub wakes the calls that wait for a pod, or for anything.
type Notifier struct {
	mu          sync.Mutex
	subscribers map[string]map[chan struct{}]bool
}

// NewHub returns a Hub.
func NewNotifier() *Notifier { return &Notifier{subscribers: map[string]map[chan struct{}]bool{}} }

// Join returns a channel that has a token whenever the key was woken since the
// last one was taken. leave must be called.
func (h *Notifier) Subscribe(key string) (woken <-chan struct{}, leave func()) {
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

// Wake wakes who waits for the key.
func (h *Notifier) Notify(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subscribers[key] {
		signal(c)
	}
}

// WakeAll wakes everybody.
func (h *Notifier) NotifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.subscribers {
		for c := range all {
			signal(c)
		}
	}
}

// Waiting is how many calls there are.
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
