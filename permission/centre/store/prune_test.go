package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/poll"
)

// Otherwise no request is answered while the applications of an hour are deleted.
func TestOtherWritesDoNotWaitForTheWholePrune(t *testing.T) {
	s := open(t)
	const applications = 5 * pruneSize / 2
	now := time.Now()
	if _, err := s.write.ExecContext(t.Context(), `
		WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version, asked)
		SELECT 'a' || n, 'c', 'shop', 'web', 'uid-' || n, 'web', '{}', 'Revoked', '', '', 1, 1, n, n, 1, 0 FROM numbers`, applications); err != nil {
		t.Fatal(err)
	}
	count := func(v View) int {
		states, err := v.CountStates()
		if err != nil {
			t.Error(err)
		}
		return states[api.Revoked]
	}
	awaitPending := func(n int) {
		poll.Require(t, time.Millisecond, 10*time.Second, "the pending writes", func(context.Context) error {
			s.commits.mu.Lock()
			defer s.commits.mu.Unlock()
			if pending := len(s.commits.pending); pending != n {
				return fmt.Errorf("%d writes are pending, want %d", pending, n)
			}
			return nil
		})
	}
	results := make(chan error, 3)
	started, released := make(chan struct{}), make(chan struct{})
	write := func(f func(Tx)) {
		results <- s.Write(t.Context(), func(tx Tx) error { f(tx); return nil })
	}
	go write(func(Tx) {
		close(started)
		<-released
	})
	<-started
	go func() { results <- s.Prune(t.Context(), now) }()
	awaitPending(1)
	left := 0
	go write(func(tx Tx) { left = count(tx.View) })
	awaitPending(2)
	close(released)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if left == 0 {
		t.Error("the write began after the whole prune")
	}
	if n := count(s.View(t.Context())); n != 0 {
		t.Errorf("%d applications are left after the prune", n)
	}
}
