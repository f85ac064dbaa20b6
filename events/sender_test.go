package events

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

func TestAnEventArrivesInBinaryModeWithItsTrace(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	sent := podEvent(t, "a")
	s.Send(trace.ContextWithSpanContext(t.Context(), span), sent)

	got := b.next(t)
	if diff := cmp.Diff(sent.String(), got.event.String()); diff != "" {
		t.Errorf("event (-sent +arrived):\n%s", diff)
	}
	if id := got.header.Get("ce-id"); id != sent.ID() {
		t.Errorf("header ce-id is %q, want binary mode with %q", id, sent.ID())
	}
	if got, want := got.header.Get("traceparent"), "00-01000000000000000000000000000000-0200000000000000-01"; got != want {
		t.Errorf("traceparent %q, want %q", got, want)
	}
}

func TestSendNeverBlocksAndAFullQueueLeavesOutTheNewest(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1, QueueLength: 2}, to(b.URL))
	s.run(t)
	b.hold()
	s.Send(t.Context(), podEvent(t, "first"))
	b.began(t) // the only worker waits for the answer
	for _, pod := range []string{"a", "b", "c", "d"} {
		s.Send(t.Context(), podEvent(t, pod))
	}
	if got := s.value(t, "breakwater.events.queue.length"); got != 2 {
		t.Errorf("%d events wait, want 2", got)
	}
	if got := s.value(t, "breakwater.events.dropped", attribute.String("reason", "queue_full")); got != 2 {
		t.Errorf("%d events were left out, want 2", got)
	}
	b.release()
	if diff := cmp.Diff([]string{"first", "a", "b"}, b.subjects(t, 3)); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestEventsOfOneIDThatWaitBecomeTheNewestOne(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	s.run(t)
	b.hold()
	s.Send(t.Context(), podEvent(t, "first"))
	b.began(t)
	for _, message := range []string{"old", "older", "newest"} {
		d := release(VerbStarted)
		d.Message = message
		s.Send(t.Context(), mustNew(t, d))
	}
	s.Send(t.Context(), podEvent(t, "last"))
	b.release()
	if diff := cmp.Diff([]string{"first", "sleep", "last"}, b.subjects(t, 3)); diff != "" {
		t.Fatalf("arrived (-want +got):\n%s", diff)
	}
	got, err := ParseChangeWorkload(b.seen(1).event)
	if err != nil {
		t.Fatal(err)
	}
	if got.Message != "newest" {
		t.Errorf("the %s one arrived", got.Message)
	}
	if n := s.value(t, "breakwater.events.coalesced"); n != 2 {
		t.Errorf("%d were coalesced, want 2", n)
	}
}

func TestAnIDThatIsBeingSentWaitsUntilThatIsOver(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 4}, to(b.URL))
	s.run(t)
	b.hold()
	s.Send(t.Context(), podEvent(t, "a"))
	b.began(t)
	s.Send(t.Context(), podEvent(t, "a"))
	s.Send(t.Context(), podEvent(t, "b"))
	b.began(t)
	if n := s.value(t, "breakwater.events.queue.length"); n != 1 {
		t.Errorf("%d events wait, want the second of a", n)
	}
	b.release()
	got := b.subjects(t, 3)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "a", "b"}, got); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestABrokerThatIsAwayForAMomentGetsTheEvent(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	s.run(t)
	b.answer(http.StatusServiceUnavailable, http.StatusNotFound)
	s.Send(t.Context(), podEvent(t, "a"))
	b.subjects(t, 3)
	s.eventually(t, 1, "breakwater.events.sent", attribute.String("result", "accepted"))
	s.eventually(t, 2, "breakwater.events.sent", attribute.String("result", "failed"))
	s.eventually(t, 0, "breakwater.events.dropped")
}

func TestAnEventThatCannotArriveIsGivenUpAndCounted(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	refusing, failing, slow := newBroker(t), newBroker(t), newBroker(t)
	refusing.answer(http.StatusBadRequest)
	failing.answer(http.StatusInternalServerError)
	slow.hold()
	t.Cleanup(slow.release)
	for name, tc := range map[string]struct {
		url    string
		event  cloudevents.Event
		reason string
	}{
		"refused":         {refusing.URL, podEvent(t, "a"), "refused"},
		"failing":         {failing.URL, podEvent(t, "a"), "failed"},
		"slow":            {slow.URL, podEvent(t, "a"), "timeout"},
		"closed":          {closed.URL, podEvent(t, "a"), "unreachable"},
		"not a URL":       {"::", podEvent(t, "a"), "invalid"},
		"not an event":    {failing.URL, cloudevents.NewEvent(), "invalid"},
		"redirected away": {redirecting(t, failing.URL), podEvent(t, "a"), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{Workers: 1, RetryTime: time.Nanosecond, SendTimeout: 250 * time.Millisecond}, to(tc.url))
			s.run(t)
			s.Send(t.Context(), tc.event)
			s.eventually(t, 1, "breakwater.events.dropped", attribute.String("reason", tc.reason))
			s.eventually(t, 1, "breakwater.events.sent", attribute.String("result", tc.reason))
		})
	}
}

func TestAnAnswerThatIsForEverIsNotAskedForTwice(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	s.run(t)
	b.answer(http.StatusBadRequest)
	s.Send(t.Context(), podEvent(t, "a"))
	s.Send(t.Context(), podEvent(t, "b"))
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestDeliverTellsWhetherTheBrokerAccepted(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	if err := s.Deliver(t.Context(), podEvent(t, "a")); err != nil {
		t.Errorf("accepted: %v", err)
	}

	b.answer(http.StatusServiceUnavailable)
	var status *StatusError
	if err := s.Deliver(t.Context(), podEvent(t, "a")); !errors.As(err, &status) || status.Permanent() {
		t.Errorf("503: %v", err)
	}
	b.answer(http.StatusForbidden)
	if err := s.Deliver(t.Context(), podEvent(t, "a")); !errors.As(err, &status) || !status.Permanent() {
		t.Errorf("403: %v", err)
	}

	b.hold()
	t.Cleanup(b.release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Deliver(ctx, podEvent(t, "a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v", err)
	}
}

func TestDeliverWithoutABrokerFailsAtOnce(t *testing.T) {
	s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) { return Endpoint{}, errors.New("not there") })
	s.run(t)
	var none *NoBrokerError
	if err := s.Deliver(t.Context(), podEvent(t, "a")); !errors.As(err, &none) {
		t.Errorf("error %v", err)
	}
	if n := s.value(t, "breakwater.events.broker.known"); n != 0 {
		t.Errorf("broker.known is %d", n)
	}
}

func TestDeliverWaitsForTheFirstLookUp(t *testing.T) {
	b := newBroker(t)
	asked, found := make(chan struct{}), make(chan struct{})
	s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) {
		close(asked)
		<-found
		return Endpoint{URL: b.URL}, nil
	})
	s.run(t)
	<-asked
	delivered := make(chan error)
	go func() { delivered <- s.Deliver(t.Context(), podEvent(t, "a")) }()
	close(found)
	if err := <-delivered; err != nil {
		t.Error(err)
	}
	if n := s.value(t, "breakwater.events.broker.known"); n != 1 {
		t.Errorf("broker.known is %d", n)
	}
}

func TestWhatIsQueuedWhenTheProcessEndsIsStillSent(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	stop := s.run(t)
	b.hold()
	s.Send(t.Context(), podEvent(t, "a"))
	b.began(t)
	s.Send(t.Context(), podEvent(t, "b"))
	stop()
	b.release()
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
	s.ended(t)
	s.Send(t.Context(), podEvent(t, "c"))
	if n := s.value(t, "breakwater.events.dropped", attribute.String("reason", "shutdown")); n != 1 {
		t.Errorf("%d events after the end were counted, want 1", n)
	}
}

func TestABrokerThatDoesNotAnswerHoldsTheEndUpForDrainTimeOnly(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1, DrainTime: time.Millisecond}, to(b.URL))
	stop := s.run(t)
	b.hold()
	t.Cleanup(b.release)
	s.Send(t.Context(), podEvent(t, "a"))
	b.began(t)
	s.Send(t.Context(), podEvent(t, "b"))
	stop()
	s.ended(t)
	if n := s.value(t, "breakwater.events.dropped", attribute.String("reason", "shutdown")); n != 2 {
		t.Errorf("%d events were counted, want 2", n)
	}
}

func TestABrokerWithTheCertificatesOfItsAddressIsTrusted(t *testing.T) {
	b := newBroker(t)
	secure := httptest.NewTLSServer(b.Config.Handler)
	t.Cleanup(secure.Close)
	certificates := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	for name, tc := range map[string]struct {
		endpoint Endpoint
		ok       bool
	}{
		"trusted":   {Endpoint{URL: secure.URL, CACerts: certificates}, true},
		"untrusted": {Endpoint{URL: secure.URL}, false},
		"not PEM":   {Endpoint{URL: secure.URL, CACerts: "none"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) { return tc.endpoint, nil })
			s.run(t)
			if err := s.Deliver(t.Context(), podEvent(t, "a")); (err == nil) != tc.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestLabelsAreBounded(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	e := podEvent(t, "a")
	e.SetType("made.up")
	if err := s.Deliver(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if n := s.value(t, "breakwater.events.sent", attribute.String("type", "other")); n != 1 {
		t.Errorf("%d events of type other, want 1", n)
	}
}

// fixture is a sender with its metrics.
type fixture struct {
	*Sender
	reader *sdkmetric.ManualReader
	end    chan error
}

func newFixture(t *testing.T, o Options, resolve Resolve) *fixture {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	s, err := NewSender(NewTarget(clock.RealClock{}, resolve), o)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Sender: s, reader: reader, end: make(chan error, 1)}
}

func to(url string) Resolve {
	return func(context.Context) (Endpoint, error) { return Endpoint{URL: url}, nil }
}

// run runs the sender until the test ends or stop is called.
func (f *fixture) run(t *testing.T) (stop func()) {
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(f.end)
		f.end <- f.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		f.ended(t)
	})
	return stop
}

// ended returns when Run has.
func (f *fixture) ended(t *testing.T) {
	t.Helper()
	select {
	case err := <-f.end:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run does not end")
	}
}

// value sums the points of a metric that have all the labels.
func (f *fixture) value(t *testing.T, name string, labels ...attribute.KeyValue) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				if has(p.Attributes, labels) {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

func has(set attribute.Set, labels []attribute.KeyValue) bool {
	for _, l := range labels {
		if v, ok := set.Value(l.Key); !ok || v != l.Value {
			return false
		}
	}
	return true
}

// eventually returns when the metric has the value.
func (f *fixture) eventually(t *testing.T, want int64, name string, labels ...attribute.KeyValue) {
	t.Helper()
	err := poll(t, func() bool { return f.value(t, name, labels...) == want })
	if err != nil {
		t.Fatalf("%s%v is %d, want %d: %v", name, labels, f.value(t, name, labels...), want, err)
	}
}

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

func podEvent(t *testing.T, pod string) cloudevents.Event {
	t.Helper()
	d := examples()[0].(PodFinished)
	d.Pod, d.PodUID = pod, types.UID(pod)
	return mustNew(t, d)
}

func mustNew(t *testing.T, d Data) cloudevents.Event {
	t.Helper()
	e, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
