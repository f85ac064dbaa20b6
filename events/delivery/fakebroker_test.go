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

// fakeBroker is an HTTP server that keeps what it is sent.
type fakeBroker struct {
	*httptest.Server
	requests chan struct{}
	arrived  chan arrival

	mu      sync.Mutex
	held    chan struct{}
	answers []int
	all     []arrival
}

type arrival struct {
	event  cloudevents.Event
	header http.Header
}

func newBroker(t *testing.T) *fakeBroker {
	b := &fakeBroker{requests: make(chan struct{}, 100), arrived: make(chan arrival, 100)}
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
	held := b.held
	code := http.StatusAccepted
	if len(b.answers) > 0 {
		code, b.answers = b.answers[0], b.answers[1:]
	}
	b.mu.Unlock()
	b.requests <- struct{}{}
	if held != nil {
		<-held
	}
	a := arrival{event: *e, header: r.Header}
	b.mu.Lock()
	b.all = append(b.all, a)
	b.mu.Unlock()
	w.WriteHeader(code)
	b.arrived <- a
}

// hold lets no request be answered until release.
func (b *fakeBroker) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = make(chan struct{})
}

func (b *fakeBroker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.held)
	b.held = nil
}

// answer gives the next requests these answers, one each.
func (b *fakeBroker) answer(codes ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = codes
}

// began returns when one more request has come in.
func (b *fakeBroker) began(t *testing.T) {
	t.Helper()
	receive(t, b.requests)
}

// next returns the next event that was answered.
func (b *fakeBroker) next(t *testing.T) arrival {
	t.Helper()
	return receive(t, b.arrived)
}

// subjects returns those of the next n events that were answered.
func (b *fakeBroker) subjects(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, b.next(t).event.Subject())
	}
	return out
}

func (b *fakeBroker) seen(i int) arrival {
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
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func redirecting(t *testing.T, to string) string {
	s := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	return s.URL
}
