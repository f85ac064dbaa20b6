package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// maxUnauthenticated limits the open connections without an authenticated request. Each
// costs about 40 KiB.
const maxUnauthenticated = 256

// unauthenticatedConns bounds the connections on which no authenticated request has
// arrived. A further connection closes the oldest one. The connection of an API server
// is authenticated within milliseconds, so clients with many connections cannot keep
// the API server out.
type unauthenticatedConns struct {
	mu sync.Mutex
	// byAge are the connections, oldest first; elements are its elements.
	byAge    *list.List
	elements map[net.Conn]*list.Element
}

func newUnauthenticatedConns() *unauthenticatedConns {
	return &unauthenticatedConns{byAge: list.New(), elements: map[net.Conn]*list.Element{}}
}

// observe implements http.Server.ConnState.
func (s *unauthenticatedConns) observe(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.add(c)
	case http.StateClosed, http.StateHijacked:
		s.remove(c)
	default:
	}
}

func (s *unauthenticatedConns) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elements[c] = s.byAge.PushBack(c)
	if s.byAge.Len() <= maxUnauthenticated {
		return
	}
	first, _ := s.byAge.Remove(s.byAge.Front()).(net.Conn)
	delete(s.elements, first)
	go func() { _ = first.Close() }() // TLS may block while it sends close_notify
}

func (s *unauthenticatedConns) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if element, ok := s.elements[c]; ok {
		s.byAge.Remove(element)
		delete(s.elements, c)
	}
}

type connectionKey struct{}

// withConnection implements http.Server.ConnContext.
func (s *unauthenticatedConns) withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, func() { s.remove(c) })
}

// authenticated records that an authenticated request arrived on the connection of a
// request.
func authenticated(ctx context.Context) {
	if remove, ok := ctx.Value(connectionKey{}).(func()); ok {
		remove()
	}
}
