package callback

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxSmall is the maximum size of a small body, in bytes. A callback has a few KiB.
	maxSmall = 64 << 10
	// places is the number of large bodies that are read and handled at a time. They take 32 MiB.
	places = 32
	// plannedWait is the longest wait of a large body for a place if handling a body took no time. It
	// determines how long each body may take to arrive. The server waits 6 s for an answer.
	plannedWait = 4 * time.Second
	// giveUpAfter is the real maximum of the wait. It is longer, because a body keeps its place while
	// it is handled. A verdict can still be stored if its answer is too late for the server.
	giveUpAfter = 2 * plannedWait
)

// largeBodies reads few large bodies at a time, so that they take little memory and CPU time from
// small ones. Others wait unread, in the order of their arrival. The longer the queue, the shorter
// the time in which a body must arrive. So a signed body gets its turn in time, even behind a
// thousand bodies that never end.
type largeBodies struct {
	buffers sync.Pool

	mu   sync.Mutex
	free int
	// waiting has the turns of the bodies that wait, and arriving those of bodies that arrive.
	// mostWaiting is the greatest length of the queue since it was last empty. The time for a
	// body depends on it and not on the present length: otherwise that time would grow while
	// the queue gets shorter, and the last bodies would wait too long.
	waiting     *list.List
	mostWaiting int
	arriving    map[*turn]struct{}
}

// turn is the time of a body at a place.
type turn struct {
	// granted is closed when the turn begins, at since.
	granted chan struct{}
	since   time.Time
	// setDeadline sets the time when a pending read of the body fails.
	setDeadline func(time.Time)
}

func newLargeBodies() *largeBodies {
	return &largeBodies{
		buffers: sync.Pool{New: func() any { return new([maxBody + 1]byte) }},
		free:    places, waiting: list.New(), arriving: map[*turn]struct{}{},
	}
}

// arrivalTime returns how long a body may take to arrive while others wait.
func arrivalTime(waiting int) time.Duration {
	if waiting == 0 {
		return bodyTimeout
	}
	return plannedWait * places / time.Duration(max(places, waiting))
}

// read reads the body of a request when it is its turn. discard must be called when it is not used
// any more.
func (l *largeBodies) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (body []byte, discard func(), err error) {
	control := http.NewResponseController(w)
	// Without support for deadlines, as in some tests, the server's own limit remains.
	t := &turn{granted: make(chan struct{}), setDeadline: func(at time.Time) { _ = control.SetReadDeadline(at) }}
	if !l.await(ctx, t) {
		return nil, nil, errBusy
	}
	buffer, _ := l.buffers.Get().(*[maxBody + 1]byte)
	discard = func() {
		l.buffers.Put(buffer)
		l.end()
	}
	n, err := readTo(buffer[:], r.Body)
	l.arrived(t)
	if err != nil {
		discard()
		return nil, nil, err
	}
	return buffer[:n], discard, nil
}

// readTo reads until the end.
func readTo(buffer []byte, from io.Reader) (n int, err error) {
	for n < len(buffer) {
		m, err := from.Read(buffer[n:])
		n += m
		switch {
		case errors.Is(err, io.EOF) && n <= maxBody:
			return n, nil
		case err != nil:
			return 0, errors.Join(echo.NewHTTPError(http.StatusRequestTimeout), err)
		}
	}
	return 0, errTooLarge
}

// await waits for the turn. It returns false if that did not begin in time.
func (l *largeBodies) await(ctx context.Context, t *turn) bool {
	l.mu.Lock()
	waits := l.waiting.PushBack(t)
	l.grant()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, giveUpAfter)
	defer cancel()
	select {
	case <-t.granted:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.since.IsZero() {
		return true
	}
	l.waiting.Remove(waits)
	return false
}

// grant grants free places, and sets the deadlines of the bodies that arrive.
func (l *largeBodies) grant() {
	for ; l.free > 0 && l.waiting.Len() > 0; l.free-- {
		t, _ := l.waiting.Remove(l.waiting.Front()).(*turn)
		t.since = time.Now()
		l.arriving[t] = struct{}{}
		close(t.granted)
	}
	l.mostWaiting = max(l.mostWaiting, l.waiting.Len())
	if l.waiting.Len() == 0 {
		l.mostWaiting = 0
	}
	within := arrivalTime(l.mostWaiting)
	for t := range l.arriving {
		t.setDeadline(t.since.Add(within))
	}
}

// arrived records that nothing more is read of a body.
func (l *largeBodies) arrived(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.arriving, t)
}

// end ends the turn of a body.
func (l *largeBodies) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	l.grant()
}
