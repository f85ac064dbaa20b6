package controlplane

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// proxy connects the API server to the webhooks in this process. It answers CONNECT
// requests for the addresses of Services.
type proxy struct {
	mu sync.Mutex
	// ports are the ports in this process by address of the Service.
	ports map[string]int
}

// route sends connections to an address of a Service to a port in this process.
func (p *proxy) route(address string, port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ports == nil {
		p.ports = map[string]int{}
	}
	p.ports[address] = port
}

// serve listens on a Unix socket until ctx ends.
func (p *proxy) serve(ctx context.Context, socket string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen for connections to webhooks: %w", err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	port, ok := p.ports[r.RequestURI]
	p.mu.Unlock()
	if r.Method != http.MethodConnect || !ok {
		http.Error(w, fmt.Sprintf("no Service has the address %s", r.RequestURI), http.StatusBadGateway)
		return
	}
	backend, err := new(net.Dialer).DialContext(r.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = backend.Close()
		return
	}
	if err := buffered.Flush(); err != nil {
		_ = backend.Close()
		_ = client.Close()
		return
	}
	go transfer(backend, buffered, client)
	transfer(client, backend, backend)
}

// transfer copies one direction and then closes both connections.
func transfer(to net.Conn, from io.Reader, source net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = source.Close()
}
