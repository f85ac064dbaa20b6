package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/database"
)

// Steps of a provider may wait for each other, but requests must not wait for steps.
func TestWorkInBackgroundLeavesConnectionsForRequests(t *testing.T) {
	s := openAt(t, database.Postgres(t)+"&pool_max_conns=4")
	var working sync.WaitGroup
	end := make(chan struct{})
	for range 8 {
		working.Go(func() {
			if err := s.WriteInBackground(t.Context(), func(Tx) error { <-end; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	defer working.Wait()
	defer close(end)
	for deadline := time.Now().Add(10 * time.Second); s.pool.Stat().AcquiredConns() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no work in background began")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Write(ctx, func(tx Tx) error { return tx.AddEndedPod("c1", "uid", time.Now()) }); err != nil {
		t.Errorf("a request waits for the work in background: %v", err)
	}
}
