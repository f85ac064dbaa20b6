// Package freeport finds a port for a server of a test that listens later, for example in
// another process.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports are outside of the range from which the kernel takes a port for a connection or for a
// listener on port 0 (Linux: from 32768), and of the node ports of Kubernetes (from 30000). A port
// of those could be taken before the server listens.
const (
	first = 20000
	count = 10000
)

// attempts is the maximum number of ports that are tried.
const attempts = 100

// given are the ports that this process has got. Their servers may not listen yet.
var given sync.Map

// Find returns a port of 127.0.0.1 on which nothing listens, and no port twice.
func Find(ctx context.Context) (int, error) { return FindOn(ctx, "127.0.0.1") }

// FindOn returns a port of an address of this host on which nothing listens, and no port twice.
func FindOn(ctx context.Context, host string) (int, error) {
	err := errors.New("this process has got too many")
	for range attempts {
		port := first + rand.IntN(count)
		if _, taken := given.LoadOrStore(port, nil); taken {
			continue
		}
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
