package delivery

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

func TestEventsAreSentInBinaryModeWithTheirTrace(t *testing.T) {
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
		t.Errorf("event (-sent +received):\n%s", diff)
	}
	if id := got.header.Get("ce-id"); id != sent.ID() {
		t.Errorf("header ce-id is %q, want binary mode with %q", id, sent.ID())
	}
	if got, want := got.header.Get("traceparent"), "00-01000000000000000000000000000000-0200000000000000-01"; got != want {
		t.Errorf("traceparent %q, want %q", got, want)
	}
}

func TestTheConnectionOfEachWorkerIsKept(t *testing.T) {
	s := newFixture(t, Options{}, to("http://broker"))
	if n := len(s.unlimited())*s.options.workers + podFinishedWorkers; n != idleConns {
		t.Errorf("%d idle connections are kept for %d workers", idleConns, n)
	}
}

func TestSendNeverBlocksAndAFullQueueDropsTheOldest(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1, queueLength: 2}, to(b.URL))
	s.run(t)
	b.block()
	s.Send(t.Context(), wakeUp(t, "first"))
	b.awaitRequest(t) // occupies the only worker
	for _, pod := range []string{"a", "b", "c", "d"} {
		s.Send(t.Context(), wakeUp(t, pod))
	}
	if got := s.value(t, "breakwater_events_queued"); got != 2 {
		t.Errorf("%d events are queued, want 2", got)
	}
	if got := s.value(t, "breakwater_events_dropped_total", attribute.String("reason", "queue_full")); got != 2 {
		t.Errorf("%d events were dropped, want 2", got)
	}
	b.unblock()
	if diff := cmp.Diff([]string{"first", "c", "d"}, b.subjects(t, 3)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestAFullQueueIsLoggedOnceAlthoughAnotherQueueAcceptsEvents(t *testing.T) {
	s := newFixture(t, Options{queueLength: 1}, to("http://broker")) // does not run: nothing is sent
	core, logs := observer.New(zap.WarnLevel)
	ctx := logging.WithLogger(t.Context(), zap.New(core).Sugar())
	for _, pod := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		s.Send(ctx, podFinished(t, pod))
	}
	s.Send(ctx, wakeUp(t, "a"))
	s.Send(ctx, podFinished(t, "h"))
	if logs.Len() != 1 {
		t.Errorf("logged %d lines, want 1", logs.Len())
	}
}

func TestFactsDoNotQueueBehindWakeUps(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1, queueLength: 2}, to(b.URL))
	s.run(t)
	b.block() // a slow server: the worker of wake-ups waits for its answer
	s.Send(t.Context(), wakeUp(t, "slow"))
	b.awaitRequest(t)
	for _, pod := range []string{"a", "b", "c"} {
		s.Send(t.Context(), wakeUp(t, pod))
	}
	suspended := started("the check failed")
	suspended.Verb, suspended.EntryTimeUnix = events.VerbSuspended, 1
	s.Send(t.Context(), mustNew(t, suspended))
	if got := b.awaitRequest(t); got != "sleep" {
		t.Errorf("while a wake-up is being sent, the event of %s is sent, want the fact of sleep", got)
	}
	b.unblock()
}

// Prometheus, or a judge of a user, may not answer for as long as a request takes.
func TestCallsToTheServerDoNotQueueBehindOtherJudges(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1, queueLength: 2}, to(b.URL))
	s.run(t)
	b.block()
	t.Cleanup(b.unblock)
	for batch, judge := range map[string]string{"metrics": v1alpha1.JudgeMetrics, "external": "canary", "server": ""} {
		for i := range 3 {
			name := batch + "-" + strconv.Itoa(i)
			s.Send(t.Context(), mustNew(t, events.ChangePodReady{
				Namespace: "default", Name: name, UID: types.UID(name), ChangeWorkload: "sleep--x--v", Version: "v",
				Attempt: 3, Stage: v1alpha1.StagePost, Judge: judge,
			}))
			if i > 0 {
				continue // the worker of the queue waits for its answer
			}
			if got := b.awaitRequest(t); got != name {
				t.Fatalf("the wake-up of %s is sent, want that of %s", got, name)
			}
		}
	}
	if n := s.value(t, "breakwater_events_dropped_total"); n != 0 {
		t.Errorf("%d were dropped", n)
	}
}

// The in-memory Broker answers when the functions have answered.
func TestVerdictsDoNotQueueBehindChangesOfReleases(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	s.run(t)
	b.block()
	t.Cleanup(b.unblock)
	change := started("")
	s.Send(t.Context(), mustNew(t, change))
	b.awaitRequest(t)
	change.UID = "another"
	s.Send(t.Context(), mustNew(t, change))
	s.Send(t.Context(), mustNew(t, events.ChangePodVerdict{
		Namespace: "default", Name: "batch", UID: "batch", ChangeWorkload: "sleep--x--v", Version: "v",
		BizExecOrderID: "order", NodeID: "node", Stage: v1alpha1.StagePost, Verdict: "fail", Time: metav1.NowMicro(),
	}))
	if got := b.awaitRequest(t); got == "sleep" {
		t.Errorf("the event of %s is sent, want the verdict", got)
	}
}

func TestAnEventThatTheBrokerAcceptedIsConfirmed(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	s.run(t)
	accepted := make(chan string, 10)
	send := func(name string) { s.SendAndConfirm(t.Context(), wakeUp(t, name), func() { accepted <- name }) }
	b.answer(http.StatusBadRequest)
	send("refused")
	b.next(t)
	b.answer(http.StatusServiceUnavailable)
	send("later")
	b.subjects(t, 2)
	if got := receive(t, accepted); got != "later" {
		t.Errorf("%s is reported", got)
	}
	b.block()
	send("busy")
	b.awaitRequest(t)
	send("replaced")
	s.Send(t.Context(), wakeUp(t, "replaced"))
	b.unblock()
	if got := []string{receive(t, accepted), receive(t, accepted)}; !slices.Equal(got, []string{"busy", "replaced"}) {
		t.Errorf("%q are reported", got)
	}
}

func TestWakeUpsDoNotQueueBehindFinishedPods(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1, queueLength: 2, podFinishedPerSecond: 1e-6}, to(b.URL))
	s.run(t)
	pods := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} // five times the length of the queue
	for _, pod := range pods {
		s.Send(t.Context(), podFinished(t, pod))
	}
	b.subjects(t, 1) // the limiter admits the first at once, and the next one days later
	s.Send(t.Context(), wakeUp(t, "ready"))
	if got := b.subjects(t, 1)[0]; got != "ready" {
		t.Errorf("received %s, want the wake-up", got)
	}
	if n := s.value(t, "breakwater_events_dropped_total"); n != 0 {
		t.Errorf("%d were dropped", n)
	}
}

func TestFinishedPodsAreDrainedWithoutARateLimit(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{podFinishedPerSecond: 1e-6}, to(b.URL))
	stop := s.run(t)
	for _, pod := range []string{"a", "b", "c"} {
		s.Send(t.Context(), podFinished(t, pod))
	}
	got := b.subjects(t, 1)
	stop()
	got = append(got, b.subjects(t, 2)...)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestTheNewestOfQueuedEventsWithOneIDIsSent(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	s.run(t)
	b.block()
	of := func(name, message string) events.ChangeWorkload {
		d := started(message)
		d.Workload.Name, d.UID = name, types.UID(name)
		return d
	}
	s.Send(t.Context(), mustNew(t, of("first", "")))
	b.awaitRequest(t)
	for _, message := range []string{"old", "older", "newest"} {
		s.Send(t.Context(), mustNew(t, of("sleep", message)))
	}
	s.Send(t.Context(), mustNew(t, of("last", "")))
	b.unblock()
	if diff := cmp.Diff([]string{"first", "sleep", "last"}, b.subjects(t, 3)); diff != "" {
		t.Fatalf("received (-want +got):\n%s", diff)
	}
	got, err := events.ParseChangeWorkload(b.nth(1).event)
	if err != nil {
		t.Fatal(err)
	}
	if got.Message != "newest" {
		t.Errorf("received the %s one", got.Message)
	}
	if n := s.value(t, "breakwater_events_coalesced_total"); n != 2 {
		t.Errorf("%d were coalesced, want 2", n)
	}
}

func TestEventsWithOneIDAreNotSentConcurrently(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 4}, to(b.URL))
	s.run(t)
	b.block()
	s.Send(t.Context(), wakeUp(t, "a"))
	b.awaitRequest(t)
	s.Send(t.Context(), wakeUp(t, "a"))
	s.Send(t.Context(), wakeUp(t, "b"))
	b.awaitRequest(t)
	if n := s.value(t, "breakwater_events_queued"); n != 1 {
		t.Errorf("%d events wait, want the second of a", n)
	}
	b.unblock()
	got := b.subjects(t, 3)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "a", "b"}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	s.run(t)
	b.answer(http.StatusServiceUnavailable, http.StatusNotFound)
	s.Send(t.Context(), wakeUp(t, "a"))
	b.subjects(t, 3)
	s.eventually(t, 1, "breakwater_event_send_attempts_total", attribute.String("result", "accepted"))
	s.eventually(t, 2, "breakwater_event_send_attempts_total", attribute.String("result", "failed"))
	s.eventually(t, 0, "breakwater_events_dropped_total")
}

func TestUndeliverableEventsAreDroppedAndCounted(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	rejecting, failing, slow := newBroker(t), newBroker(t), newBroker(t)
	rejecting.answer(http.StatusBadRequest)
	failing.answer(http.StatusInternalServerError)
	slow.block()
	t.Cleanup(slow.unblock)
	for name, tc := range map[string]struct {
		url    string
		event  cloudevents.Event
		reason string
		within time.Duration
	}{
		"rejected":        {rejecting.URL, wakeUp(t, "a"), "refused", time.Minute},
		"failing":         {failing.URL, wakeUp(t, "a"), "failed", time.Minute},
		"slow":            {slow.URL, wakeUp(t, "a"), "timeout", 250 * time.Millisecond},
		"closed":          {closed.URL, wakeUp(t, "a"), "unreachable", time.Minute},
		"not a URL":       {"::", wakeUp(t, "a"), "invalid", time.Minute},
		"not an event":    {failing.URL, cloudevents.NewEvent(), "invalid", time.Minute},
		"redirected away": {redirecting(t, failing.URL), wakeUp(t, "a"), "refused", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{workers: 1, retryTime: time.Nanosecond, sendTimeout: tc.within}, to(tc.url))
			s.run(t)
			s.Send(t.Context(), tc.event)
			s.eventually(t, 1, "breakwater_events_dropped_total", attribute.String("reason", tc.reason))
			s.eventually(t, 1, "breakwater_event_send_attempts_total", attribute.String("result", tc.reason))
		})
	}
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	s.run(t)
	b.answer(http.StatusBadRequest)
	s.Send(t.Context(), wakeUp(t, "a"))
	s.Send(t.Context(), wakeUp(t, "b"))
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestQueuedEventsAreSentAtShutdown(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1}, to(b.URL))
	stop := s.run(t)
	b.block()
	s.Send(t.Context(), wakeUp(t, "a"))
	b.awaitRequest(t)
	s.Send(t.Context(), wakeUp(t, "b"))
	stop()
	b.unblock()
	if diff := cmp.Diff([]string{"a", "b"}, b.subjects(t, 2)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	s.awaitStop(t)
	s.Send(t.Context(), wakeUp(t, "c"))
	if n := s.value(t, "breakwater_events_dropped_total", attribute.String("reason", "shutdown")); n != 1 {
		t.Errorf("%d events after the end were counted, want 1", n)
	}
}

func TestShutdownTakesAtMostTheDrainTime(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{workers: 1, drainTime: time.Millisecond}, to(b.URL))
	stop := s.run(t)
	b.block()
	t.Cleanup(b.unblock)
	s.Send(t.Context(), wakeUp(t, "a"))
	b.awaitRequest(t)
	s.Send(t.Context(), wakeUp(t, "b"))
	stop()
	s.awaitStop(t)
	if n := s.value(t, "breakwater_events_dropped_total", attribute.String("reason", "shutdown")); n != 2 {
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
	if n := s.value(t, "breakwater_event_send_attempts_total", attribute.String("type", "other")); n != 1 {
		t.Errorf("%d events of type other, want 1", n)
	}
}
