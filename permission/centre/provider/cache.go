package provider

import (
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// closeAfter is for how long those who have a caller may use it when there is one
// of another version: longer than a claimed call takes.
const closeAfter = time.Minute

// Cache keeps the callers of the providers' current versions: their compiled
// expressions and open connections.
type Cache struct {
	Factory Factory

	mu     sync.Mutex
	kept   map[string]Caller
	latest map[string]int64
}

// New returns a provider's caller.
func (c *Cache) New(p api.Provider) (Caller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept, c.latest = map[string]Caller{}, map[string]int64{}
	}
	if caller := c.kept[p.Name]; caller != nil && c.latest[p.Name] == p.Version {
		return caller, nil
	}
	caller, err := c.Factory.New(p)
	if err != nil {
		return nil, err
	}
	if closer, ok := c.kept[p.Name].(interface{ Close() }); ok {
		time.AfterFunc(closeAfter, closer.Close)
	}
	c.kept[p.Name], c.latest[p.Name] = caller, p.Version
	return caller, nil
}
