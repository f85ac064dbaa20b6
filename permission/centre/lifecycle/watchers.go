package lifecycle

import "sync"

// Watchers are the long polls that wait for a change of an application.
type Watchers struct {
	mu       sync.Mutex
	channels map[string][]chan struct{}
}

// Watch returns a channel that is closed at the next change, and a function
// that ends the watch.
func (h *Watchers) Watch(id string) (changed <-chan struct{}, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.channels == nil {
		h.channels = map[string][]chan struct{}{}
	}
	c := make(chan struct{})
	h.channels[id] = append(h.channels[id], c)
	return c, func() { h.remove(id, c) }
}

// Notify wakes the watchers of an application.
func (h *Watchers) Notify(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels[id] {
		close(c)
	}
	delete(h.channels, id)
}

// Active reports whether a watch is active.
func (h *Watchers) Active() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.channels) > 0
}

func (h *Watchers) remove(id string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.channels[id]
	for i, other := range list {
		if other == c {
			h.channels[id] = append(list[:i:i], list[i+1:]...)
		}
	}
	if len(h.channels[id]) == 0 {
		delete(h.channels, id)
	}
}
