package altershield

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// CurrentClient caches the client of the current Config. A process that reads its
// configuration for each event then has one token bucket and reuses connections.
// The zero value is ready to use. It is safe for concurrent use.
type CurrentClient struct {
	// Options are passed to New. Set them before the first call of For.
	Options []Option

	mu sync.Mutex
	// fingerprint is the hash of the Config of current. The Config itself is not
	// stored: printing a CurrentClient would show its token.
	fingerprint [sha256.Size]byte
	current     *Client
}

// For returns the client for config. It returns the same client until a call with
// another config. A replaced client completes its calls.
func (c *CurrentClient) For(config Config) *Client {
	fingerprint := sha256.Sum256(fmt.Appendf(nil, "%#v", plain(config)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.fingerprint != fingerprint {
		if c.current != nil {
			c.current.Close()
		}
		c.fingerprint, c.current = fingerprint, New(config, c.Options...)
	}
	return c.current
}
