package store

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// maxGroupSize and maxGroupTime bound a group, because later writes wait for it.
const (
	maxGroupSize = 64
	maxGroupTime = 50 * time.Millisecond
)

// sharedCommit commits concurrent writes to SQLite in one transaction, so that
// they share one disk sync. Each write has a savepoint and is rolled back alone.
type sharedCommit struct {
	leader  sync.Mutex
	mu      sync.Mutex
	pending []*pendingWrite
}

// pendingWrite is one write of a group.
type pendingWrite struct {
	ctx  context.Context
	f    func(Tx) error
	done chan struct{}
	err  error
}

// run calls f. A panic fails this write alone: the other writes of the group have other
// callers, which would wait forever.
func (w *pendingWrite) run(tx Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return w.f(tx)
}

// write runs f in a group. The caller that has locked leader commits for all callers.
func (g *sharedCommit) write(ctx context.Context, s *Store, f func(Tx) error) error {
	w := &pendingWrite{ctx: ctx, f: f, done: make(chan struct{})}
	g.mu.Lock()
	g.pending = append(g.pending, w)
	g.mu.Unlock()

	g.leader.Lock()
	defer g.leader.Unlock()
	for {
		select {
		case <-w.done:
			return w.err
		default:
			s.commitGroup(ctx, g)
		}
	}
}

// next removes the oldest pending write; nil if there is none.
func (g *sharedCommit) next() *pendingWrite {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) == 0 {
		return nil
	}
	w := g.pending[0]
	g.pending = g.pending[1:]
	return w
}

// commitGroup runs one group and reports the result to its callers.
func (s *Store) commitGroup(ctx context.Context, g *sharedCommit) {
	// The end of a caller's context must not interrupt a statement: SQLite would
	// roll back the whole group.
	group, err := s.writeGroup(context.WithoutCancel(ctx), g)
	for _, w := range group {
		if err != nil {
			w.err = err
		}
		close(w.done)
	}
}

// writeGroup runs pending writes in one transaction and returns them; an error
// applies to all of them.
func (s *Store) writeGroup(ctx context.Context, g *sharedCommit) (group []*pendingWrite, err error) {
	begun, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		if w := g.next(); w != nil {
			group = append(group, w)
		}
		return group, fmt.Errorf("begin: %w", err)
	}
	tx := &preparedTx{Tx: begun, prepared: &s.prepared, used: map[string]*sql.Stmt{}}
	defer func() {
		_ = tx.Rollback()
		tx.learn(ctx)
	}()
	for began := time.Now(); len(group) < maxGroupSize && time.Since(began) < maxGroupTime; {
		w := g.next()
		if w == nil {
			break
		}
		group = append(group, w)
		if w.err = w.ctx.Err(); w.err != nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
			return group, fmt.Errorf("create savepoint: %w", err)
		}
		w.err = w.run(Tx{View{q: tx, dialect: s.dialect, ctx: context.WithoutCancel(w.ctx)}})
		if w.err != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO change"); err != nil {
				return group, fmt.Errorf("roll back to savepoint: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE change"); err != nil {
			return group, fmt.Errorf("release savepoint: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return group, fmt.Errorf("commit: %w", err)
	}
	return group, nil
}
