package groupcommit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Panic is the value with which Do panics.
type Panic struct {
	// Value is the value of the panic in the decision or the store.
	Value any
	// Stack is where it happened.
	Stack []byte
}

// String is what a server logs when it recovers.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// commit is the commit of one group.
type commit[O metav1.Object, R, A any] struct {
	*Committer[O, R, A]
	key   types.NamespacedName
	queue *queue[O, R, A]
	// group are the calls without an answer. all also has the answered ones.
	group, all []*call[R, A]
	outcome    Stats

	// state is the object that the group is decided on; hasState reports whether there
	// is one. fromLiveRead reports whether it was read for this group.
	state                  O
	hasState, fromLiveRead bool
}

func newCommit[O metav1.Object, R, A any](c *Committer[O, R, A], key types.NamespacedName, l *queue[O, R, A], group []*call[R, A]) *commit[O, R, A] {
	m := &commit[O, R, A]{Committer: c, key: key, queue: l, group: group, all: group, outcome: Stats{Size: len(group)}}
	m.state, m.hasState = c.store.Cached(key)
	if l.written && (!m.hasState || older(m.state, l.last)) {
		m.state, m.hasState = l.last, true
	}
	return m
}

// runAndEnd runs the commit and ends all calls of the group. It passes a panic on to the
// callers, where an HTTP server recovers it. In this goroutine it would end the process.
func (m *commit[O, R, A]) runAndEnd() {
	defer func() {
		var panicked *Panic
		if p := recover(); p != nil {
			panicked = &Panic{p, debug.Stack()}
		}
		for _, waits := range m.all {
			waits.panicked = panicked
			close(waits.done)
		}
	}()
	m.run()
}

// run answers all calls of the group.
func (m *commit[O, R, A]) run() {
	defer func() { m.options.Observe(m.outcome) }()
	for {
		m.dropExpired()
		if len(m.group) == 0 || m.attempt() {
			return
		}
		m.addWaiting()
	}
}

// addWaiting adds the calls that arrived during a failed attempt, which would
// otherwise wait for the next group.
func (m *commit[O, R, A]) addWaiting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.group = append(m.group, m.queue.waiting...)
	m.all = append(m.all, m.queue.waiting...)
	m.outcome.Size += len(m.queue.waiting)
	m.queue.waiting = nil
}

// attempt tries to decide and write once. It returns whether the group is answered.
func (m *commit[O, R, A]) attempt() bool {
	ctx, cancel := m.context()
	defer cancel()
	if !m.hasState {
		return m.read(ctx)
	}
	requests := make([]R, len(m.group))
	for i, waits := range m.group {
		requests[i] = waits.request
	}
	decision := m.decide(m.state, requests)
	if !decision.Changed {
		if m.fromLiveRead {
			m.answer(decision.Answers)
			return true
		}
		m.hasState = false // confirm with a live read
		return false
	}
	written, err := m.store.Swap(ctx, decision.Next)
	if err == nil {
		m.outcome.Written = true
		m.queue.last, m.queue.written = written, true
		m.answer(decision.Answers)
		return true
	}
	tried := m.state
	m.hasState, m.fromLiveRead = false, false
	if !apierrs.IsConflict(err) {
		return m.failed(ctx, err)
	}
	m.outcome.Conflicts++
	if m.outcome.Conflicts == 1 {
		// The cache usually has the conflicting write by now. A second conflict leads to a live
		// read.
		if cached, ok := m.store.Cached(m.key); ok && older(tried, cached) {
			m.state, m.hasState = cached, true
		}
	}
	return false
}

// read reads the object live. It answers the group only on a permanent error.
func (m *commit[O, R, A]) read(ctx context.Context) bool {
	m.outcome.Reads++
	state, err := m.store.Live(ctx, m.key)
	if err != nil {
		return m.failed(ctx, err)
	}
	m.state, m.hasState, m.fromLiveRead = state, true, true
	return false
}

// failed answers the group with a permanent error, and with ReturnErrors with any. After a
// transient error it is unknown whether the write succeeded; the next live read shows it.
func (m *commit[O, R, A]) failed(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false // the time of one call is over: it is dropped, and the others are tried again
	}
	if m.options.ReturnErrors || permanent(err) {
		m.queue.written = false
		for _, waits := range m.group {
			waits.err = err
		}
		return true
	}
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return false
}

func permanent(err error) bool {
	return apierrs.IsNotFound(err) || apierrs.IsForbidden(err) || apierrs.IsInvalid(err) ||
		apierrs.IsUnauthorized(err) || apierrs.IsBadRequest(err) || apierrs.IsRequestEntityTooLargeError(err)
}

func (m *commit[O, R, A]) answer(answers []A) {
	for i, waits := range m.group {
		waits.answer = answers[i]
	}
}

// dropExpired answers calls that are canceled or have too little time left.
func (m *commit[O, R, A]) dropExpired() {
	var rest []*call[R, A]
	for _, waits := range m.group {
		deadline, ok := waits.ctx.Deadline()
		switch {
		case waits.ctx.Err() != nil, ok && time.Until(deadline) < m.options.Margin:
			waits.err = ErrDeadline
		default:
			rest = append(rest, waits)
		}
	}
	m.group = rest
}

// context returns the context of one attempt. It is not canceled with a single
// call, whose client may disconnect. It ends at the earliest deadline of the group,
// so that a slow write does not delay every answer.
func (m *commit[O, R, A]) context() (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(m.group[0].ctx)
	var first time.Time
	for _, waits := range m.group {
		if deadline, ok := waits.ctx.Deadline(); ok && (first.IsZero() || deadline.Before(first)) {
			first = deadline
		}
	}
	if first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}

// older reports whether a is older than b. It is false if they cannot be compared: a
// write based on an old state fails anyway.
func older[O metav1.Object](a, b O) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
