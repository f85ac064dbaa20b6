package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// maxStrangers limits the open connections without an authenticated request. Each
// costs about 40 KiB.
const maxStrangers = 256

// strangers bounds the connections on which no authenticated request has arrived. A
// further one closes the oldest: that of an API server is authenticated in
// milliseconds, so many others cannot keep it out.
type strangers struct {
	mu     sync.Mutex
	oldest *list.List
	places map[net.Conn]*list.Element
}

func newStrangers() *strangers {
	return &strangers{oldest: list.New(), places: map[net.Conn]*list.Element{}}
}

// observe implements http.Server.ConnState.
func (s *strangers) observe(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.add(c)
	case http.StateClosed, http.StateHijacked:
		s.remove(c)
	default:
	}
}

func (s *strangers) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[c] = s.oldest.PushBack(c)
	if s.oldest.Len() <= maxStrangers {
		return
	}
	first, _ := s.oldest.Remove(s.oldest.Front()).(net.Conn)
	delete(s.places, first)
	go func() { _ = first.Close() }() // TLS may wait to send its end
}

func (s *strangers) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if place, ok := s.places[c]; ok {
		s.oldest.Remove(place)
		delete(s.places, c)
	}
}

type connectionKey struct{}

// withConnection implements http.Server.ConnContext.
func (s *strangers) withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, func() { s.remove(c) })
}

// authenticated records that an authenticated request arrived on the connection of a
// request.
func authenticated(ctx context.Context) {
	if remove, ok := ctx.Value(connectionKey{}).(func()); ok {
		remove()
	}
}
