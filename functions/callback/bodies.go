package callback

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxBody is the maximum size of a callback, in bytes. A callback has all rules,
	// with texts of any length.
	maxBody = 1 << 20
	// maxReserved is the maximum memory of all small bodies, in bytes.
	maxReserved = 8 << 20
	// firstBuffer is the initial size of a body's buffer, in bytes. Most callbacks fit into it;
	// for others it is doubled as the body arrives.
	firstBuffer = 4 << 10
	// bodyTimeout limits the arrival of a body. The server sends it at once.
	bodyTimeout = 5 * time.Second
)

var (
	errTooLarge = echo.NewHTTPError(http.StatusRequestEntityTooLarge)
	errBusy     = echo.NewHTTPError(http.StatusServiceUnavailable)
)

// bodies bounds the memory of all small bodies; largeBodies has the others. Every client that
// knows the platform's name can send bodies, so a body takes memory only as it arrives. When all memory is taken,
// the largest body that is still arriving is dropped; of equally large ones, the oldest. The
// callbacks of the server are small and arrive at once, so they are not dropped. While complete
// bodies take all memory, small ones wait: each complete body is verified and handled within
// RequestTimeout.
type bodies struct {
	limit int

	mu sync.Mutex
	// freed is signaled when memory is freed or a body is dropped.
	freed *sync.Cond
	// reserved is the memory of all bodies, and complete that of complete bodies. droppedBytes is
	// the memory of dropped bodies, which is freed as soon as their reads have failed.
	reserved, complete, droppedBytes int
	arriving                         map[*arrival]struct{}
	// number is the number of the last body.
	number int
}

// arrival is a body that is arriving or complete.
type arrival struct {
	number            int
	reserved          int
	dropped, complete bool
	// setDeadline sets the time when a pending read of the body fails.
	setDeadline func(time.Time)
}

func newBodies(limit int) *bodies {
	b := &bodies{limit: limit, arriving: map[*arrival]struct{}{}}
	b.freed = sync.NewCond(&b.mu)
	return b
}

// read reads the body of a request. discard must be called when it is not used any more.
func (b *bodies) read(w http.ResponseWriter, r *http.Request) (body []byte, discard func(), err error) {
	if r.ContentLength > maxBody {
		return nil, func() {}, errTooLarge
	}
	control := http.NewResponseController(w)
	// Without support for deadlines, as in some tests, the server's own limit remains.
	a := &arrival{setDeadline: func(t time.Time) { _ = control.SetReadDeadline(t) }}
	a.setDeadline(time.Now().Add(bodyTimeout))
	b.mu.Lock()
	b.number++
	a.number = b.number
	b.arriving[a] = struct{}{}
	b.mu.Unlock()
	discard = func() { b.discard(a) }
	body, err = b.fill(a, r.Body)
	if err == nil && !b.arrived(a) {
		err = errBusy
	}
	if err != nil {
		discard()
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, func() {}, err
	}
	return body, discard, nil
}

// fill reads until the end, and reserves the memory before it is used.
func (b *bodies) fill(a *arrival, from io.Reader) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			size := min(max(firstBuffer, 2*cap(body)), maxBody+1)
			if len(body) > maxBody {
				return nil, errTooLarge
			}
			// While the content is copied, both buffers are reserved.
			if !b.reserve(a, size) {
				return nil, errBusy
			}
			larger := make([]byte, len(body), size)
			copy(larger, body)
			b.unreserve(a, cap(body))
			body = larger
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF) && len(body) <= maxBody:
			return body, nil
		case err != nil:
			return nil, errors.Join(echo.NewHTTPError(http.StatusRequestTimeout), err)
		}
	}
}

// reserve reserves n bytes for a. To free them it drops larger bodies that are still arriving.
// It returns false if a is dropped, or is itself the largest.
func (b *bodies) reserve(a *arrival, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited := false
	for !a.dropped && b.reserved+n > b.limit {
		if b.reserved-b.droppedBytes+n > b.limit {
			switch largest := b.largest(); {
			case largest.reserved > a.reserved+n:
				b.drop(largest)
				continue
			case b.complete > 0: // they are freed soon
			case largest.reserved > a.reserved:
				b.drop(largest)
				continue
			default:
				return false
			}
		}
		b.freed.Wait()
		waited = true
	}
	if a.dropped {
		return false
	}
	if waited {
		a.setDeadline(time.Now().Add(bodyTimeout)) // it was not read while it waited
	}
	a.reserved += n
	b.reserved += n
	return true
}

// largest returns the largest body that is still arriving, the oldest of several.
func (b *bodies) largest() *arrival {
	var largest *arrival
	for a := range b.arriving {
		if largest == nil || a.reserved > largest.reserved || (a.reserved == largest.reserved && a.number < largest.number) {
			largest = a
		}
	}
	return largest
}

// drop drops a body that is still arriving. Its read fails.
func (b *bodies) drop(a *arrival) {
	a.dropped = true
	b.droppedBytes += a.reserved
	delete(b.arriving, a)
	a.setDeadline(time.Now())
	b.freed.Broadcast() // it may be waiting
}

// unreserve frees memory of a body that goes on arriving.
func (b *bodies) unreserve(a *arrival, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free(a, n)
}

// arrived records that a body is complete, and reports whether it was not dropped.
func (b *bodies) arrived(a *arrival) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.arriving, a)
	if a.dropped {
		return false
	}
	a.complete = true
	b.complete += a.reserved
	return true
}

func (b *bodies) discard(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.arriving, a)
	b.free(a, a.reserved)
}

func (b *bodies) free(a *arrival, n int) {
	a.reserved -= n
	b.reserved -= n
	if a.dropped {
		b.droppedBytes -= n
	}
	if a.complete {
		b.complete -= n
	}
	b.freed.Broadcast()
}
