package store

import (
	"context"
	"fmt"
	"sync"
)

// most bounds how many changes are committed together.
const most = 64

// group commits what waits for SQLite's only writer together: the disk is
// waited for once. Each change has a savepoint, and is undone alone.
type group struct {
	turn    sync.Mutex
	mu      sync.Mutex
	waiting []*change
}

// change is one of a group.
type change struct {
	ctx  context.Context
	f    func(Tx) error
	done chan struct{}
	err  error
}

// write has a change done, by whoever's turn comes first.
func (g *group) write(ctx context.Context, s *Store, f func(Tx) error) error {
	c := &change{ctx: ctx, f: f, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()

	g.turn.Lock()
	select {
	case <-c.done:
		g.turn.Unlock()
		return c.err
	default:
	}
	for {
		g.mu.Lock()
		n := min(len(g.waiting), most)
		batch := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		g.mu.Unlock()
		s.commit(batch)
		select {
		case <-c.done:
			g.turn.Unlock()
			return c.err
		default:
		}
	}
}

// commit does a group of changes in one transaction.
func (s *Store) commit(batch []*change) {
	// No change's end may interrupt a statement: SQLite would undo the others too.
	ctx := context.WithoutCancel(batch[0].ctx)
	err := s.commitAll(ctx, batch)
	for _, c := range batch {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
}

func (s *Store) commitAll(ctx context.Context, batch []*change) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, c := range batch {
		if c.err = c.ctx.Err(); c.err != nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		c.err = c.f(Tx{View: View{q: tx, dialect: s.dialect, ctx: context.WithoutCancel(c.ctx)}, SQL: tx})
		if c.err != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO change"); err != nil {
				return fmt.Errorf("undo: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE change"); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
