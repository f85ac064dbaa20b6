package judge

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// Source is a reader of Prometheus and the labels of its series.
type Source struct {
	Reader judge.Reader
	Labels Labels
}

// SharedReader shares an answer of a reader between all looks in a namespace that need it within answerTTL of each
// other. It limits the concurrent queries, and shares the places between namespaces. Errors are not reused.
type SharedReader struct {
	reader judge.Reader
	places *fairsemaphore.Semaphore // one for each concurrent query, by namespace

	mu      sync.Mutex
	answers answers
	queries map[string]*query // those without an answer yet
}

// query is a query that is queued or sent. It ends when no look waits for it any more.
type query struct {
	waiting int // the number of looks
	cancel  context.CancelFunc

	done   chan struct{} // closed when answer and err are set
	answer []samples.Series
	err    error
}

var _ judge.Reader = (*SharedReader)(nil)

// NewSharedReader returns a SharedReader with a maximum number of concurrent queries.
func NewSharedReader(reader judge.Reader, concurrent int, c clock.PassiveClock) *SharedReader {
	return &SharedReader{
		reader: reader, places: fairsemaphore.New(concurrent),
		answers: answers{clock: c, byKey: map[string]*list.Element{}}, queries: map[string]*query{},
	}
}

// Range implements judge.Reader. The series are shared and must not be modified.
func (s *SharedReader) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	if ctx.Err() != nil {
		return nil, waitError(ctx)
	}
	key := fmt.Sprintf("%s %d %d %d %s", prometheus.Namespace(ctx), from.UnixMilli(), to.UnixMilli(), step.Milliseconds(), expression)
	q, answer := s.join(ctx, key, func(ctx context.Context) ([]samples.Series, error) {
		return s.reader.Range(ctx, expression, from, to, step)
	})
	if q == nil {
		return answer, nil
	}
	select {
	case <-ctx.Done():
		s.leave(key, q)
		return nil, waitError(ctx)
	case <-q.done:
		return q.answer, q.err
	}
}

func waitError(ctx context.Context) error {
	return fmt.Errorf("wait for the answer of Prometheus: %w", ctx.Err())
}

// join returns the query with this key, or its answer if there is one. If there is neither, the
// query starts.
func (s *SharedReader) join(ctx context.Context, key string, read func(context.Context) ([]samples.Series, error)) (*query, []samples.Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.answers.get(key); ok {
		return nil, answer
	}
	q := s.queries[key]
	if q == nil {
		q = &query{done: make(chan struct{})}
		s.queries[key] = q
		// The query continues if its first caller is cancelled, because others wait for the answer.
		ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go s.run(ctx, key, q, read)
	}
	q.waiting++
	return q, nil
}

// leave ends a query if no look waits for it any more.
func (s *SharedReader) leave(key string, q *query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.cancel()
		s.forget(key, q)
	}
}

// forget removes a query, unless a later one has its key.
func (s *SharedReader) forget(key string, q *query) {
	if s.queries[key] == q {
		delete(s.queries, key)
	}
}

// run sends a query when it has a place.
func (s *SharedReader) run(ctx context.Context, key string, q *query, read func(context.Context) ([]samples.Series, error)) {
	defer close(q.done)
	defer q.cancel()
	namespace := prometheus.Namespace(ctx)
	if q.err = s.places.Acquire(ctx, namespace); q.err != nil {
		return // no look waits
	}
	defer s.places.Release(namespace)
	q.answer, q.err = read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.err == nil && s.queries[key] == q {
		s.answers.add(key, q.answer)
	}
	s.forget(key, q)
}

// failingReader is the reader while the configuration of Prometheus is invalid. It returns the
// error of the configuration.
type failingReader struct{ err error }

// Range implements judge.Reader.
func (u failingReader) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]samples.Series, error) {
	return nil, u.err
}
