package server

import "sync"

// Hub wakes the calls that wait for a pod, or for anything.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool
}

// NewHub returns a Hub.
func NewHub() *Hub { return &Hub{waiting: map[string]map[chan struct{}]bool{}} }

// Join returns a channel that has a token whenever the key was woken since the
// last one was taken. leave must be called.
func (h *Hub) Join(key string) (woken <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[key] == nil {
		h.waiting[key] = map[chan struct{}]bool{}
	}
	h.waiting[key][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(h.waiting[key], c); len(h.waiting[key]) == 0 {
			delete(h.waiting, key)
		}
	}
}

// Wake wakes who waits for the key.
func (h *Hub) Wake(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.waiting[key] {
		wake(c)
	}
}

// WakeAll wakes everybody.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.waiting {
		for c := range all {
			wake(c)
		}
	}
}

// Waiting is how many calls there are.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, all := range h.waiting {
		n += len(all)
	}
	return n
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
