package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bounds of what is committed together: how many changes, and for how long
// others, the queue among them, wait for the writer.
const (
	most    = 64
	longest = 50 * time.Millisecond
)

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
		s.commit(ctx, g)
		select {
		case <-c.done:
			g.turn.Unlock()
			return c.err
		default:
		}
	}
}

// next takes the change that waits for longest; nil when none does.
func (g *group) next() *change {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil
	}
	c := g.waiting[0]
	g.waiting = g.waiting[1:]
	return c
}

// commit does a group of changes in one transaction.
func (s *Store) commit(ctx context.Context, g *group) {
	// No change's end may interrupt a statement: SQLite would undo the others too.
	batch, err := s.commitAll(context.WithoutCancel(ctx), g)
	for _, c := range batch {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
}

// commitAll returns the changes that it took on; an error is all of theirs.
func (s *Store) commitAll(ctx context.Context, g *group) (batch []*change, err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		if c := g.next(); c != nil {
			batch = append(batch, c)
		}
		return batch, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for began := time.Now(); len(batch) < most && time.Since(began) < longest; {
		c := g.next()
		if c == nil {
			break
		}
		batch = append(batch, c)
		if c.err = c.ctx.Err(); c.err != nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
			return batch, fmt.Errorf("begin: %w", err)
		}
		c.err = c.f(Tx{View: View{q: tx, dialect: s.dialect, ctx: context.WithoutCancel(c.ctx)}, SQL: tx})
		if c.err != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO change"); err != nil {
				return batch, fmt.Errorf("undo: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE change"); err != nil {
			return batch, fmt.Errorf("undo: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return batch, fmt.Errorf("commit: %w", err)
	}
	return batch, nil
}
