package lifecycle

import "sync"

// Hub wakes those who wait for an application to change.
type Hub struct {
	mu      sync.Mutex
	waiters map[string][]chan struct{}
}

// Watch returns a channel that is closed at the next change, and what ends the
// wait before that.
func (h *Hub) Watch(id string) (changed <-chan struct{}, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters == nil {
		h.waiters = map[string][]chan struct{}{}
	}
	c := make(chan struct{})
	h.waiters[id] = append(h.waiters[id], c)
	return c, func() { h.remove(id, c) }
}

// Changed wakes who waits for an application.
func (h *Hub) Changed(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.waiters[id] {
		close(c)
	}
	delete(h.waiters, id)
}

// Waiting says whether anybody waits.
func (h *Hub) Waiting() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiters) > 0
}

func (h *Hub) remove(id string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.waiters[id]
	for i, other := range list {
		if other == c {
			h.waiters[id] = append(list[:i:i], list[i+1:]...)
		}
	}
	if len(h.waiters[id]) == 0 {
		delete(h.waiters, id)
	}
}
