package delivery

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/breakwater-dev/breakwater/events"
)

func TestAnEventArrivesInBinaryModeWithItsTrace(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	sent := wakeUp(t, "a")
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
	s.Send(t.Context(), wakeUp(t, "first"))
	b.began(t) // the only worker waits for the answer
	for _, pod := range []string{"a", "b", "c", "d"} {
		s.Send(t.Context(), wakeUp(t, pod))
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

func TestNoWakeUpWaitsBehindFinishedPods(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1, QueueLength: 2, PodsPerSecond: 1e-6}, to(b.URL))
	s.run(t)
	pods := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} // five times the length of the queue
	for _, pod := range pods {
		s.Send(t.Context(), podEvent(t, pod))
	}
	b.subjects(t, 1) // the pace lets the first through, and none of the others for days
	s.Send(t.Context(), wakeUp(t, "ready"))
	if got := b.subjects(t, 1)[0]; got != "ready" {
		t.Errorf("%s arrived, want the wake-up", got)
	}
	if n := s.value(t, "breakwater.events.dropped"); n != 0 {
		t.Errorf("%d were left out", n)
	}
}

func TestFinishedPodsAreToldWithoutAPaceWhenTheSenderEnds(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{PodsPerSecond: 1e-6}, to(b.URL))
	stop := s.run(t)
	for _, pod := range []string{"a", "b", "c"} {
		s.Send(t.Context(), podEvent(t, pod))
	}
	got := b.subjects(t, 1)
	stop()
	got = append(got, b.subjects(t, 2)...)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestEventsOfOneIDThatWaitBecomeTheNewestOne(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	s.run(t)
	b.hold()
	s.Send(t.Context(), wakeUp(t, "first"))
	b.began(t)
	for _, message := range []string{"old", "older", "newest"} {
		s.Send(t.Context(), mustNew(t, started(message)))
	}
	s.Send(t.Context(), wakeUp(t, "last"))
	b.release()
	if diff := cmp.Diff([]string{"first", "sleep", "last"}, b.subjects(t, 3)); diff != "" {
		t.Fatalf("arrived (-want +got):\n%s", diff)
	}
	got, err := events.ParseChangeWorkload(b.seen(1).event)
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
	s.Send(t.Context(), wakeUp(t, "a"))
	b.began(t)
	s.Send(t.Context(), wakeUp(t, "a"))
	s.Send(t.Context(), wakeUp(t, "b"))
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
	s.Send(t.Context(), wakeUp(t, "a"))
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
		within time.Duration
	}{
		"refused":         {refusing.URL, wakeUp(t, "a"), "refused", time.Minute},
		"failing":         {failing.URL, wakeUp(t, "a"), "failed", time.Minute},
		"slow":            {slow.URL, wakeUp(t, "a"), "timeout", 250 * time.Millisecond},
		"closed":          {closed.URL, wakeUp(t, "a"), "unreachable", time.Minute},
		"not a URL":       {"::", wakeUp(t, "a"), "invalid", time.Minute},
		"not an event":    {failing.URL, cloudevents.NewEvent(), "invalid", time.Minute},
		"redirected away": {redirecting(t, failing.URL), wakeUp(t, "a"), "refused", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{Workers: 1, RetryTime: time.Nanosecond, SendTimeout: tc.within}, to(tc.url))
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
	s.Send(t.Context(), wakeUp(t, "a"))
	s.Send(t.Context(), wakeUp(t, "b"))
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestWhatIsQueuedWhenTheProcessEndsIsStillSent(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Workers: 1}, to(b.URL))
	stop := s.run(t)
	b.hold()
	s.Send(t.Context(), wakeUp(t, "a"))
	b.began(t)
	s.Send(t.Context(), wakeUp(t, "b"))
	stop()
	b.release()
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
	s.ended(t)
	s.Send(t.Context(), wakeUp(t, "c"))
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
	s.Send(t.Context(), wakeUp(t, "a"))
	b.began(t)
	s.Send(t.Context(), wakeUp(t, "b"))
	stop()
	s.ended(t)
	if n := s.value(t, "breakwater.events.dropped", attribute.String("reason", "shutdown")); n != 2 {
		t.Errorf("%d events were counted, want 2", n)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	e := wakeUp(t, "a")
	e.SetType("made.up")
	if err := s.Deliver(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if n := s.value(t, "breakwater.events.sent", attribute.String("type", "other")); n != 1 {
		t.Errorf("%d events of type other, want 1", n)
	}
}
