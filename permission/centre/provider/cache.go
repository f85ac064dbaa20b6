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

	mu      sync.Mutex
	clients map[string]cachedClient
}

// cachedClient is the client of one version of a provider. A provider that is deleted and
// registered again has the same version, but another time of creation.
type cachedClient struct {
	client  Client
	version int64
	created time.Time
}

// Client returns the cached client of a provider, and replaces it when the provider has a
// new version or was registered again.
func (c *Cache) Client(p api.Provider) (Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		c.clients = map[string]cachedClient{}
	}
	known := c.clients[p.Name]
	if known.client != nil && known.version == p.Version && known.created.Equal(p.Created) {
		return known.client, nil
	}
	client, err := c.Factory.New(p)
	if err != nil {
		return nil, err
	}
	if closer, ok := known.client.(interface{ Close() }); ok {
		time.AfterFunc(closeDelay, closer.Close)
	}
	c.clients[p.Name] = cachedClient{client, p.Version, p.Created}
	return client, nil
}
