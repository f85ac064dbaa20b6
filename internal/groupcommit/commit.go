package groupcommit

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// commit is one group on its way.
type commit[O metav1.Object, R, A any] struct {
	*Committer[O, R, A]
	key   types.NamespacedName
	queue *queue[O, R, A]
	// group are those whose answer is still open, all those who were ever in it.
	group, all []*call[R, A]
	outcome    Outcome

	// state is what the group is decided on; known says that there is one, and
	// live that it was read for this group.
	state                  O
	hasState, fromLiveRead bool
}

func newCommit[O metav1.Object, R, A any](c *Committer[O, R, A], key types.NamespacedName, l *queue[O, R, A], group []*call[R, A]) *commit[O, R, A] {
	m := &commit[O, R, A]{Committer: c, key: key, queue: l, group: group, all: group, outcome: Outcome{Size: len(group)}}
	m.state, m.hasState = c.store.Cached(key)
	if l.written && (!m.hasState || older(m.state, l.last)) {
		m.state, m.hasState = l.last, true
	}
	return m
}

// run answers the whole group.
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

// join takes in who came during an attempt that has to be repeated: they would
// only wait for the next group.
func (m *commit[O, R, A]) addWaiting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.group = append(m.group, m.queue.waiting...)
	m.all = append(m.all, m.queue.waiting...)
	m.outcome.Size += len(m.queue.waiting)
	m.queue.waiting = nil
}

// attempt says whether the group was answered.
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
		m.hasState = false // to be proven by a live read
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
		// Mostly the watch has told by now what the write came too late for; if
		// it is not the newest either, the next one is read live.
		if cached, ok := m.store.Cached(m.key); ok && older(tried, cached) {
			m.state, m.hasState = cached, true
		}
	}
	return false
}

// read reads the object live; it answers the group only when that cannot be.
func (m *commit[O, R, A]) read(ctx context.Context) bool {
	m.outcome.Reads++
	state, err := m.store.Live(ctx, m.key)
	if err != nil {
		return m.failed(ctx, err)
	}
	m.state, m.hasState, m.fromLiveRead = state, true, true
	return false
}

// failed answers the group with an error that no retry can mend. Any other
// leaves open whether something was written: the next live read tells.
func (m *commit[O, R, A]) failed(ctx context.Context, err error) bool {
	if permanent(err) {
		m.queue.written = false
		for _, waits := range m.group {
			waits.err = err
		}
		return true
	}
	pause := time.NewTimer(m.options.RetryPause)
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

// dropLate answers those whose time does not suffice any more, or who have gone.
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

// context is that of one attempt. It is nobody's of the group: who goes away
// does not take the others' write along. It ends when the first of them has to
// be answered, so that a slow write is not waited for by all.
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

// older says whether a is a state before b. What cannot be compared is taken
// for the newer: a write on an old state is refused anyway.
func older[O metav1.Object](a, b O) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
