package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	testMax    = 40 * blockBytes
	testShared = 20 * blockBytes
)

// An answer is parsed after it was read, so its share is kept until then.
func TestTheBytesOfAllAnswersAreLimitedAndEveryAnswerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(testMax, testShared)
		var mu sync.Mutex
		inFlight, most := 0, 0
		var queries sync.WaitGroup
		for i := range 50 {
			queries.Go(func() {
				size := 1 + i%40 // blocks
				ctx, s := b.begin(t.Context())
				for range size {
					if err := s.spend(ctx, blockBytes); err != nil {
						t.Error(err)
					}
					mu.Lock()
					inFlight += blockBytes
					most = max(most, inFlight)
					mu.Unlock()
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Millisecond)
				mu.Lock()
				inFlight -= size * blockBytes
				mu.Unlock()
				s.release()
			})
		}
		queries.Wait()
		if most > testMax+testShared || most < testMax {
			t.Errorf("%d blocks were in flight, want at most %d, and nearly as many", most/blockBytes, (testMax+testShared)/blockBytes)
		}
		if !b.pool.TryAcquire(testShared) || !b.large.TryAcquire(1) {
			t.Error("the budget was not returned")
		}
	})
}

func TestAnAnswerThatWaitsForTheBudgetEndsWithItsQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(testMax, testShared)
		ctx, large := b.begin(t.Context())
		if err := large.spend(ctx, testShared+blockBytes); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, other := b.begin(ctx)
		if err := other.spend(ctx, testShared+blockBytes); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a timeout", err)
		}
		other.release()
		ctx, small := b.begin(t.Context())
		if err := small.spend(ctx, testShared); err != nil {
			t.Errorf("a small answer is not read beside the large one: %v", err)
		}
		small.release()
		large.release()
		if err := large.spend(ctx, 1); !errors.Is(err, errEnded) {
			t.Errorf("got %v, want that the query has ended", err)
		}
	})
}

func TestAnAnswerThatIsTooLargeSaysWhatToDo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		size := 0
		if strings.HasPrefix(r.Form.Get("query"), "large") {
			size = MaxBytes
		}
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[]}`)
		_, _ = io.Copy(w, io.LimitReader(spaces{}, int64(size)))
		_, _ = io.WriteString(w, "}")
	}))
	defer server.Close()
	client, err := New(server.URL, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_760_000_000, 0)
	for name, want := range map[string]string{"large": fmt.Sprintf("more than %d MiB: select fewer series, or use a recording rule with fewer labels", MaxBytes>>20), "small": ""} {
		if _, err := client.Range(t.Context(), name, at, at.Add(time.Minute), Step); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if !client.budget.pool.TryAcquire(sharedBytes) || !client.budget.large.TryAcquire(1) {
		t.Error("the budget was not returned")
	}
}

// spaces is an endless text without content.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
