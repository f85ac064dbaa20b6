package altershield

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// Clients keeps the client of the current Config, so that a process that reads
// its configuration for each event still has one token bucket and warm
// connections. The zero value is ready; it is safe for concurrent use.
type Clients struct {
	// Options are given to every New. Set before the first For.
	Options []Option

	mu sync.Mutex
	// made is the fingerprint of the config that current was made from: the
	// config itself would let a printed Clients show the token.
	made    [sha256.Size]byte
	current *Client
}

// For returns the client of a config: the same one while the config is equal.
// A client whose config is gone still ends its calls.
func (c *Clients) For(config Config) *Client {
	fingerprint := sha256.Sum256(fmt.Appendf(nil, "%#v", plain(config)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.made != fingerprint {
		if c.current != nil {
			c.current.Close()
		}
		c.made, c.current = fingerprint, New(config, c.Options...)
	}
	return c.current
}
