package delivery

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// fakeBroker is an HTTP server that records events.
type fakeBroker struct {
	*httptest.Server
	requests chan string
	answered chan delivered

	mu      sync.Mutex
	blocked chan struct{}
	answers []int
	all     []delivered
}

// delivered is an event that was answered.
type delivered struct {
	event  cloudevents.Event
	header http.Header
}

func newBroker(t *testing.T) *fakeBroker {
	b := &fakeBroker{requests: make(chan string, 100), answered: make(chan delivered, 100)}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := cehttp.NewEventFromHTTPRequest(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	b.mu.Lock()
	blocked := b.blocked
	code := http.StatusAccepted
	if len(b.answers) > 0 {
		code, b.answers = b.answers[0], b.answers[1:]
	}
	b.mu.Unlock()
	b.requests <- e.Subject()
	if blocked != nil {
		<-blocked
	}
	d := delivered{event: *e, header: r.Header}
	b.mu.Lock()
	b.all = append(b.all, d)
	b.mu.Unlock()
	w.WriteHeader(code)
	b.answered <- d
}

// block blocks all requests until unblock.
func (b *fakeBroker) block() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocked = make(chan struct{})
}

func (b *fakeBroker) unblock() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.blocked)
	b.blocked = nil
}

// answer sets the status codes of the next requests.
func (b *fakeBroker) answer(codes ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = codes
}

// awaitRequest waits for the next request and returns the subject of its event.
func (b *fakeBroker) awaitRequest(t *testing.T) string {
	t.Helper()
	return receive(t, b.requests)
}

// next waits for the next answered event.
func (b *fakeBroker) next(t *testing.T) delivered {
	t.Helper()
	return receive(t, b.answered)
}

// subjects waits for the next n answered events and returns their subjects.
func (b *fakeBroker) subjects(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, b.next(t).event.Subject())
	}
	return out
}

// nth returns the answered event with index i.
func (b *fakeBroker) nth(i int) delivered {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[i]
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing received within a minute")
		panic("unreachable")
	}
}

func redirecting(t *testing.T, to string) string {
	s := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	return s.URL
}
