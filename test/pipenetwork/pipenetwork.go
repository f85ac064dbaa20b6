// Package pipenetwork connects HTTP clients with a server in memory, so that a test with a fake clock (testing/synctest) can
// have both. Body is a request without a server, whose body arrives on such a connection.
package pipenetwork

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Network connects clients with one server in memory.
type Network struct {
	mu     sync.Mutex
	accept chan net.Conn
	closed chan struct{}
}

// Listen returns a listener of the network.
func (n *Network) Listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept, n.closed = make(chan net.Conn), make(chan struct{})
	return &listener{n, n.accept, n.closed}
}

// Client returns an HTTP client with a source address.
func (n *Network) Client(source string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		accept, closed := n.accept, n.closed
		n.mu.Unlock()
		ours, theirs := net.Pipe()
		select {
		case accept <- conn{theirs, source}:
			return ours, nil
		case <-closed:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

type listener struct {
	network *Network
	accept  chan net.Conn
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// conn is a connection with a source address.
type conn struct {
	net.Conn
	source string
}

func (c conn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.source), Port: 1} }
