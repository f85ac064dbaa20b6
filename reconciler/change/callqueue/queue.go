// Package callqueue limits the calls to the server that a process has in flight, and
// shares them round robin between releases.
//
// The wake-up of a call leaves the process only when the queue admits the call. So
// a release of 1000 pods delays a release of one pod by one call, and function
// submit never has a long queue. No timeout runs while the first call of a stage waits here; a
// repeated call waits while the timeout of its stage runs.
package callqueue

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// minCalls and maxCalls bound the calls in flight of a process. Between them the limit is
	// the number of calls that function submit makes per second (qps), so that a call waits
	// only seconds for the rate limit of function submit.
	minCalls, maxCalls = 2, 50

	// FlightTime is how long a call counts as in flight if its end is not observed:
	// its wake-up is lost, or function submit is unreachable. It is longer than
	// function submit takes for a call.
	FlightTime = 30 * time.Second

	// askDivisor limits questions for verdicts to 1/askDivisor of the rate of calls, so that
	// most of the rate is left for calls.
	askDivisor = 4

	// admissionTime is how long an admitted call counts as in flight without Begin: its object
	// may have been deleted, or another process may lead its bucket.
	admissionTime = 5 * time.Second
)

// Call is a call that is due.
type Call struct {
	// ID identifies the call of a stage.
	ID string
	// Attempt counts the attempts. A new attempt waits again.
	Attempt int64
	// Release is the release that the call is for.
	Release string
	// Priority: the call is made before the calls of the same release without it.
	// The finish of a batch has it, because it leads to a verdict, and a fail stops the
	// release; the start of a batch does not. All calls of an order have it except its
	// close, for which only a version that is applied again waits, at most five seconds.
	Priority bool
	// Admitted is called when the queue admits a call that waited. Begin then returns true,
	// if it is called for this attempt within admissionTime. Admitted must not block or call
	// the queue.
	Admitted func()
}

// Queue is the queue of a process. It is safe for concurrent use.
type Queue struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	limit int
	// asks limits the calls that ask for a verdict.
	asks     *rate.Limiter
	inFlight map[string]flight
	// releases are the releases with waiting calls; the first is the next one.
	releases *list.List // of *release
	byName   map[string]*list.Element
	waiting  map[string]*list.Element // in the calls of its release
}

// flight is a call that was admitted.
type flight struct {
	attempt int64
	// begun: Begin returned true.
	begun bool
	// until is when the call stops counting as in flight.
	until time.Time
}

// release is a release with waiting calls.
type release struct {
	name  string
	calls *list.List // of Call
}

// New returns an empty queue.
func New(c clock.PassiveClock) *Queue {
	return &Queue{
		clock: c, limit: maxCalls, asks: rate.NewLimiter(maxCalls/askDivisor, maxCalls/askDivisor), inFlight: map[string]flight{},
		releases: list.New(), byName: map[string]*list.Element{}, waiting: map[string]*list.Element{},
	}
}

// SetQPS derives the limits of the queue from the rate limit of function submit: how many calls
// are in flight, and how many questions for verdicts are asked per second.
func (q *Queue) SetQPS(qps float32) {
	q.mu.Lock()
	q.limit = max(minCalls, min(maxCalls, int(qps)))
	q.asks.SetLimitAt(q.clock.Now(), rate.Limit(qps/askDivisor))
	q.asks.SetBurstAt(q.clock.Now(), max(1, int(qps/askDivisor)))
	admitted := q.admit()
	q.mu.Unlock()
	run(admitted)
}

// TakeQuestion takes one question of the limit, and reports whether one was left: then function submit
// may ask the server for a verdict now. A question does not wait in the
// queue, because no write to the object shows when it ended.
func (q *Queue) TakeQuestion() bool { return q.asks.AllowN(q.clock.Now(), 1) }

// Begin reports whether the call may be made now. If not, the call waits for its turn.
func (q *Queue) Begin(c Call) bool {
	q.mu.Lock()
	now := q.clock.Now()
	if f, found := q.inFlight[c.ID]; !found || f.attempt != c.Attempt || !now.Before(f.until) {
		delete(q.inFlight, c.ID)
		q.wait(c)
	}
	admitted := q.admit()
	f, found := q.inFlight[c.ID]
	if found && !f.begun {
		q.inFlight[c.ID] = flight{attempt: f.attempt, begun: true, until: now.Add(FlightTime)}
	}
	q.mu.Unlock()
	run(slices.DeleteFunc(admitted, func(a Call) bool { return a.ID == c.ID }))
	return found
}

// EndEarlier ends the attempts before this one.
func (q *Queue) EndEarlier(c Call) {
	q.mu.Lock()
	if f, found := q.inFlight[c.ID]; found && f.attempt < c.Attempt {
		delete(q.inFlight, c.ID)
	}
	admitted := q.admit()
	q.mu.Unlock()
	run(admitted)
}

// End ends a call: it was made, or it is not due any more.
func (q *Queue) End(id string) {
	q.mu.Lock()
	delete(q.inFlight, id)
	q.leave(id)
	admitted := q.admit()
	q.mu.Unlock()
	run(admitted)
}

// Observe reports the lengths as metrics.
func (q *Queue) Observe(meter metric.Meter) {
	metrics.Observe(meter, "breakwater_server_calls_queued", func(observe func(int64, ...string)) {
		waiting, _ := q.Lengths()
		observe(int64(waiting))
	})
	metrics.Observe(meter, "breakwater_server_calls_in_flight", func(observe func(int64, ...string)) {
		_, inFlight := q.Lengths()
		observe(int64(inFlight))
	})
}

// Lengths returns the number of calls that wait, and of those in flight.
func (q *Queue) Lengths() (waiting, inFlight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), len(q.inFlight)
}

// wait adds a call to those of its release, unless it waits already.
func (q *Queue) wait(c Call) {
	if e, found := q.waiting[c.ID]; found {
		e.Value = c
		return
	}
	at, found := q.byName[c.Release]
	if !found {
		at = q.releases.PushBack(&release{name: c.Release, calls: list.New()})
		q.byName[c.Release] = at
	}
	q.waiting[c.ID] = at.Value.(*release).add(c)
}

// add adds a call behind all others. A call with Priority is added behind the others with
// Priority.
func (r *release) add(c Call) *list.Element {
	if c.Priority {
		for e := r.calls.Front(); e != nil; e = e.Next() {
			if !e.Value.(Call).Priority {
				return r.calls.InsertBefore(c, e)
			}
		}
	}
	return r.calls.PushBack(c)
}

// leave removes a call that waits.
func (q *Queue) leave(id string) {
	e, found := q.waiting[id]
	if !found {
		return
	}
	at := q.byName[e.Value.(Call).Release]
	r := at.Value.(*release)
	r.calls.Remove(e)
	delete(q.waiting, id)
	if r.calls.Len() == 0 {
		q.releases.Remove(at)
		delete(q.byName, r.name)
	}
}

// admit admits calls, one of each release in turn, and returns them.
func (q *Queue) admit() []Call {
	now := q.clock.Now()
	for id, f := range q.inFlight {
		if !now.Before(f.until) {
			delete(q.inFlight, id)
		}
	}
	var out []Call
	for q.releases.Len() > 0 && len(q.inFlight) < q.limit {
		at := q.releases.Front()
		c := at.Value.(*release).calls.Front().Value.(Call)
		q.releases.MoveToBack(at)
		q.leave(c.ID)
		q.inFlight[c.ID] = flight{attempt: c.Attempt, until: now.Add(admissionTime)}
		out = append(out, c)
	}
	return out
}

// run calls the callbacks of admitted calls, without the lock.
func run(admitted []Call) {
	for i := range admitted {
		admitted[i].Admitted()
	}
}
