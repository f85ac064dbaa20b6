package judge

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// answerTTL is how long an answer of Prometheus is reused. All batches of a release send
	// the same queries, so the number of queries does not grow with the number of batches.
	answerTTL = 10 * time.Second
	// answerCacheSize is the size of the LRU cache in answers.
	answerCacheSize = 256
)

// Source is a reader of Prometheus and the labels of its series.
type Source struct {
	Reader judge.Reader
	Labels Labels
}

// SharedReader shares an answer of a reader between all looks that need it within answerTTL,
// and limits the concurrent queries. Errors are not reused.
type SharedReader struct {
	reader   judge.Reader
	answers  *cache.LRUExpireCache
	inFlight singleflight.Group
	places   chan struct{} // one for each concurrent query
}

var _ judge.Reader = (*SharedReader)(nil)

// NewSharedReader returns a SharedReader with a maximum number of concurrent queries.
func NewSharedReader(reader judge.Reader, concurrent int, c clock.PassiveClock) *SharedReader {
	return &SharedReader{
		reader: reader, answers: cache.NewLRUExpireCacheWithClock(answerCacheSize, c), places: make(chan struct{}, concurrent),
	}
}

// Range implements judge.Reader. The series are shared and must not be modified.
func (s *SharedReader) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	key := fmt.Sprintf("%d %d %d %s", from.UnixMilli(), to.UnixMilli(), step.Milliseconds(), expression)
	if answer, ok := s.answers.Get(key); ok {
		return answer.([]samples.Series), nil
	}
	// The query continues if its first caller is cancelled, because others wait for the answer.
	shared := context.WithoutCancel(ctx)
	result := s.inFlight.DoChan(key, func() (any, error) {
		s.places <- struct{}{}
		defer func() { <-s.places }()
		answer, err := s.reader.Range(shared, expression, from, to, step)
		if err == nil {
			s.answers.Add(key, answer, answerTTL)
		}
		return answer, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the answer of Prometheus: %w", ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.([]samples.Series), nil
	}
}

// failingReader is the reader while the configuration of Prometheus is invalid. It returns the
// error of the configuration.
type failingReader struct{ err error }

// Range implements judge.Reader.
func (u failingReader) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]samples.Series, error) {
	return nil, u.err
}
