package functions

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxBody is the maximum size of a request, in bytes. The data has at most
	// events.MaxData; the rest is for attributes, for extensions of a Broker (the error
	// of a dead letter) and for structured mode.
	maxBody = 64 << 10
	// maxUnread is the maximum number of requests whose body is arriving. With those that
	// wait for their turn, they take about 32 MiB.
	maxUnread = 256
	// bodyTimeout limits the arrival of a body. A Broker sends it at once.
	bodyTimeout = 5 * time.Second
)

var errDropped = fmt.Errorf("the request was dropped: its body was the oldest of more than %d that were arriving", maxUnread)

// unreadBodies bounds the bodies that are arriving: every pod can send requests to a function.
// The oldest of too many is dropped. A Broker sends the body with the header, so its events are
// never the oldest.
type unreadBodies struct {
	mu sync.Mutex
	// arriving are the bodies, the oldest first, each by the function that ends its read.
	arriving *list.List
}

// read reads the body of a request. A body that is too large is a permanent error.
func (b *unreadBodies) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	// Without support for deadlines, as in some tests, the server's own limit remains.
	deadline := func(t time.Time) { _ = control.SetReadDeadline(t) }
	deadline(time.Now().Add(bodyTimeout))
	done := b.add(func() { deadline(time.Now()) })
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	kept := done()
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, Permanent(fmt.Errorf("read event: %w", err))
	case err == nil:
		deadline(time.Time{}) // the connection is used again
		return body, nil
	case !kept:
		err = errDropped
	}
	w.Header().Set("Connection", "close") // the rest of the body is not read
	return nil, fmt.Errorf("read event: %w", err)
}

// add adds a body, and drops the oldest of too many. done must be called when the read of the
// body has ended; it returns false if the body was dropped.
func (b *unreadBodies) add(drop func()) (done func() (kept bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	added := b.arriving.PushBack(drop)
	if b.arriving.Len() > maxUnread {
		b.arriving.Remove(b.arriving.Front()).(func())()
	}
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		before := b.arriving.Len()
		b.arriving.Remove(added)
		return b.arriving.Len() < before
	}
}
