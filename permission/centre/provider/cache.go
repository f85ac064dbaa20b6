package provider

import (
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// closeDelay is how long a replaced client stays open for calls in progress. It
// is longer than any call, with the time until its slot.
const closeDelay = time.Minute

// Cache caches the client of each provider's current version, with its compiled
// expressions and open connections.
type Cache struct {
	Factory Factory

	mu       sync.Mutex
	clients  map[string]Client
	versions map[string]int64
}

// Client returns the cached client of a provider, and replaces it when the provider has a
// new version.
func (c *Cache) Client(p api.Provider) (Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		c.clients, c.versions = map[string]Client{}, map[string]int64{}
	}
	if client := c.clients[p.Name]; client != nil && c.versions[p.Name] == p.Version {
		return client, nil
	}
	client, err := c.Factory.New(p)
	if err != nil {
		return nil, err
	}
	if closer, ok := c.clients[p.Name].(interface{ Close() }); ok {
		time.AfterFunc(closeDelay, closer.Close)
	}
	c.clients[p.Name], c.versions[p.Name] = client, p.Version
	return client, nil
}
