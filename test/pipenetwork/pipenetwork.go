// Package pipenetwork connects HTTP clients with a server in memory, so that a test with a fake clock (testing/synctest) can
// have both. Body is a request without a server, whose body arrives on such a connection.
package pipenetwork

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
)

// Network connects clients with one server in memory.
type Network struct {
	mu     sync.Mutex
	accept chan net.Conn
	closed chan struct{}
	// lost is true for the connections that Lose loses.
	lost *atomic.Bool
}

// Listen returns a listener of the network.
func (n *Network) Listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept, n.closed, n.lost = make(chan net.Conn), make(chan struct{}), &atomic.Bool{}
	return &listener{n, n.accept, n.closed}
}

// Lose loses everything that clients send on their present connections, as a load balancer that is replaced
// without a reset does.
func (n *Network) Lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost.Store(true)
	n.lost = &atomic.Bool{}
}

// Client returns an HTTP client with a source address.
func (n *Network) Client(source string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.Dial(source), DisableKeepAlives: true}}
}

// Dial returns a function that connects a client that has a source address with the server.
func (n *Network) Dial(source string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		accept, closed, lost := n.accept, n.closed, n.lost
		n.mu.Unlock()
		ours, theirs := net.Pipe()
		select {
		case accept <- conn{theirs, source}:
			return clientConn{ours, lost}, nil
		case <-closed:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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

// clientConn is the connection of a client.
type clientConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c clientConn) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}
