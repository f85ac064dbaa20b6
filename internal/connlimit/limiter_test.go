package connlimit

import (
	"net"
	"net/http"
	"slices"
	"testing"
)

// conn is a connection that reports that it is closed.
type conn struct {
	net.Conn
	name   string
	closed chan<- string
}

func (c *conn) Close() error {
	c.closed <- c.name
	return nil
}

func TestAFurtherConnectionClosesTheOldestUnauthenticatedOne(t *testing.T) {
	l, closed := New(2), make(chan string, 10)
	open := func(name string) *conn {
		c := &conn{name: name, closed: closed}
		l.observe(c, http.StateNew)
		return c
	}
	authenticated := open("authenticated")
	Authenticated(l.withConnection(t.Context(), authenticated))
	ended := open("ended")
	l.observe(ended, http.StateClosed)
	var got []string
	for _, name := range []string{"first", "second", "third", "fourth"} {
		open(name)
		if name == "third" || name == "fourth" {
			got = append(got, <-closed)
		}
	}
	if want := []string{"first", "second"}; !slices.Equal(got, want) || len(closed) > 0 {
		t.Errorf("closed %q and %d more, want %q", got, len(closed), want)
	}
	if len(l.elements) != 2 || l.byAge.Len() != 2 {
		t.Errorf("%d connections are counted, want 2", len(l.elements))
	}
	Authenticated(t.Context()) // without a Limiter
}
