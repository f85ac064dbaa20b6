// Package notifier wakes calls that wait for the change of an object.
package notifier

import "sync"

// Notifier notifies waiting calls of changes.
type Notifier struct {
	mu          sync.Mutex
	subscribers map[string]map[chan struct{}]bool
}

// New returns a Notifier.
func New() *Notifier { return &Notifier{subscribers: map[string]map[chan struct{}]bool{}} }

// Subscribe returns a channel that receives a value after notifications of the key;
// several notifications may be merged into one. The caller must call unsubscribe.
func (n *Notifier) Subscribe(key string) (changed <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subscribers[key] == nil {
		n.subscribers[key] = map[chan struct{}]bool{}
	}
	n.subscribers[key][c] = true
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.subscribers[key], c); len(n.subscribers[key]) == 0 {
			delete(n.subscribers, key)
		}
	}
}

// Notify notifies the subscribers of the key.
func (n *Notifier) Notify(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.subscribers[key] {
		signal(c)
	}
}

// NotifyAll notifies all subscribers.
func (n *Notifier) NotifyAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, all := range n.subscribers {
		for c := range all {
			signal(c)
		}
	}
}

// Count returns the number of subscribers.
func (n *Notifier) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, all := range n.subscribers {
		count += len(all)
	}
	return count
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
