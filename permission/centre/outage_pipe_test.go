package centre

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// pipeNetwork connects clients with one server in memory.
type pipeNetwork struct {
	mu     sync.Mutex
	accept chan net.Conn
	closed chan struct{}
}

// listen returns a listener of the network.
func (n *pipeNetwork) listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept, n.closed = make(chan net.Conn), make(chan struct{})
	return &pipeListener{n, n.accept, n.closed}
}

// client returns an HTTP client with a source address.
func (n *pipeNetwork) client(source string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		n.mu.Lock()
		accept, closed := n.accept, n.closed
		n.mu.Unlock()
		ours, theirs := net.Pipe()
		select {
		case accept <- pipeConn{theirs, source}:
			return ours, nil
		case <-closed:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

type pipeListener struct {
	network *pipeNetwork
	accept  chan net.Conn
	closed  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// pipeConn is a connection with a source address.
type pipeConn struct {
	net.Conn
	source string
}

func (c pipeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.source), Port: 1} }
