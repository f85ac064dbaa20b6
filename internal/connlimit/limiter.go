// Package connlimit bounds the connections of an HTTP server on which no authenticated
// request has arrived. Each costs the server about 40 KiB.
package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Limiter bounds unauthenticated connections. A further connection closes the oldest one.
// The connection of a client with a credential is authenticated within milliseconds, so
// clients with many connections cannot keep it out.
type Limiter struct {
	most int
	mu   sync.Mutex
	// byAge are the connections, oldest first; elements are its elements.
	byAge    *list.List
	elements map[net.Conn]*list.Element
}

// New returns a Limiter of at most that many connections.
func New(most int) *Limiter {
	return &Limiter{most: most, byAge: list.New(), elements: map[net.Conn]*list.Element{}}
}

// Apply makes a server use the Limiter.
func (l *Limiter) Apply(server *http.Server) {
	server.ConnState, server.ConnContext = l.observe, l.withConnection
}

// observe implements http.Server.ConnState.
func (l *Limiter) observe(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.add(c)
	case http.StateClosed, http.StateHijacked:
		l.remove(c)
	default:
	}
}

func (l *Limiter) add(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.elements[c] = l.byAge.PushBack(c)
	if l.byAge.Len() <= l.most {
		return
	}
	first, _ := l.byAge.Remove(l.byAge.Front()).(net.Conn)
	delete(l.elements, first)
	go func() { _ = first.Close() }() // TLS may block while it sends close_notify
}

func (l *Limiter) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if element, ok := l.elements[c]; ok {
		l.byAge.Remove(element)
		delete(l.elements, c)
	}
}

type connectionKey struct{}

// withConnection implements http.Server.ConnContext.
func (l *Limiter) withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, func() { l.remove(c) })
}

// Authenticated records that an authenticated request arrived on the connection of a
// request. Without a Limiter it does nothing.
func Authenticated(ctx context.Context) {
	if remove, ok := ctx.Value(connectionKey{}).(func()); ok {
		remove()
	}
}
