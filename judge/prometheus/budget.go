package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// MaxBytes is the largest answer that is read. Prometheus returns about 25 bytes a sample.
	MaxBytes = 64 << 20
	// sharedBytes is the size of what all answers may have together, besides the one that may be large.
	sharedBytes = 32 << 20
	// MaxBytesInFlight is the size of all answers that are read at a time. It and Overhead are exported for a test of
	// the memory of function judge.
	MaxBytesInFlight = MaxBytes + sharedBytes
	// Overhead is the memory that the reading of an answer needs, as a multiple of its size: its copies in
	// the decoder of JSON, and its samples. 3.96 was measured with 20000 series of 60 samples.
	Overhead = 4

	// blockBytes is how much of the budget an answer takes at a time.
	blockBytes = 64 << 10
)

// errEnded ends the reading of a body whose query has ended.
var errEnded = errors.New("the query has ended")

// budget limits the bytes of all answers that are read at a time. Answers share a pool. An answer that
// finds it empty waits until it is the only large one, which may have largest bytes whatever the others
// have. So the large one always ends, and none waits for an answer that itself waits.
type budget struct {
	largest     int64 // bytes
	pool, large *semaphore.Weighted
}

// newBudget returns a budget for one large answer and shared bytes of others.
func newBudget(largest, shared int64) *budget {
	return &budget{largest: largest, pool: semaphore.NewWeighted(shared), large: semaphore.NewWeighted(1)}
}

// share is what one query has of a budget, until it is released.
type share struct {
	budget *budget

	mu sync.Mutex
	// read are the bytes of the answer, and pooled those of the pool. A large answer has none of these.
	read, pooled    int64
	large, released bool
}

// spend counts n bytes of the answer, and waits while the budget is spent.
func (s *share) spend(ctx context.Context, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read += n; s.read > s.budget.largest {
		return fmt.Errorf("the answer has more than %d MiB: select fewer series, or use a recording rule with fewer labels", s.budget.largest>>20)
	}
	for !s.released && !s.large && s.read > s.pooled {
		if s.budget.pool.TryAcquire(blockBytes) {
			s.pooled += blockBytes
			continue
		}
		s.mu.Unlock()
		err := s.budget.large.Acquire(ctx, 1)
		s.mu.Lock()
		switch {
		case err != nil:
			return fmt.Errorf("wait until another large answer is read: %w", err)
		case s.released:
			s.budget.large.Release(1)
		default:
			s.budget.pool.Release(s.pooled)
			s.pooled, s.large = 0, true
		}
	}
	if s.released {
		return errEnded
	}
	return nil
}

// release returns the share when the answer is parsed.
func (s *share) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.pool.Release(s.pooled)
	if s.large {
		s.budget.large.Release(1)
	}
	s.pooled, s.large, s.released = 0, false, true
}

type shareKey struct{}

// begin returns a context for the requests of one query, and its share.
func (b *budget) begin(ctx context.Context) (context.Context, *share) {
	s := &share{budget: b}
	return context.WithValue(ctx, shareKey{}, s), s
}

// limitedBody is a body whose bytes are spent.
type limitedBody struct {
	io.ReadCloser
	ctx   context.Context
	share *share
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), blockBytes)])
	if spent := b.share.spend(b.ctx, int64(n)); spent != nil {
		return n, spent
	}
	return n, err
}
