package store

import (
	"context"
	"database/sql"
	"sync"
)

// maxPrepared bounds the prepared statements, which are kept until the end, and maxPreparedText
// the bytes of each. The statements of the centre are fewer and shorter, except for lists with
// many filters.
const (
	maxPrepared     = 256
	maxPreparedText = 4 << 10
)

// prepared are the prepared statements of SQLite: parsing a statement takes longer than
// executing it. pgx prepares statements itself.
type prepared struct {
	db  *sql.DB
	mu  sync.Mutex
	all map[string]*sql.Stmt
}

func (p *prepared) find(query string) (s *sql.Stmt, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[query], len(p.all) >= maxPrepared
}

// prepare prepares a statement, or returns nil if it is not to be kept. It needs a connection.
func (p *prepared) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if len(query) > maxPreparedText {
		return nil, nil
	}
	s, full := p.find(query)
	if s != nil || full {
		return s, nil
	}
	s, err := p.db.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.all[query]; other != nil {
		_ = s.Close()
		return other, nil
	}
	if p.all == nil {
		p.all = map[string]*sql.Stmt{}
	}
	p.all[query] = s
	return s, nil
}

func (p *prepared) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		_ = s.Close()
	}
	p.all = nil
}

// preparedReader is a querier with prepared statements, outside a transaction.
type preparedReader struct {
	*sql.DB
	prepared *prepared
}

// QueryContext implements querier.
func (r preparedReader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := r.prepared.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return r.DB.QueryContext(ctx, query, args...)
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext implements querier.
func (r preparedReader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := r.prepared.prepare(ctx, query)
	if err != nil || s == nil {
		return r.DB.QueryRowContext(ctx, query, args...)
	}
	return s.QueryRowContext(ctx, args...)
}

// preparedTx is a transaction with prepared statements. It has the only connection, so it cannot
// prepare any that outlives it: learn does that after its end.
type preparedTx struct {
	*sql.Tx
	prepared *prepared
	used     map[string]*sql.Stmt
	missing  []string
}

func (t *preparedTx) statement(ctx context.Context, query string) *sql.Stmt {
	if s, ok := t.used[query]; ok {
		return s
	}
	s, _ := t.prepared.find(query)
	if s == nil {
		t.missing = append(t.missing, query)
	} else {
		s = t.StmtContext(ctx, s)
	}
	t.used[query] = s
	return s
}

// ExecContext implements querier.
func (t *preparedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := t.statement(ctx, query); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, query, args...)
}

// QueryContext implements querier.
func (t *preparedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := t.statement(ctx, query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return t.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext implements querier.
func (t *preparedTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := t.statement(ctx, query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, query, args...)
}

// learn prepares the statements that the transaction lacked. One that cannot be prepared has
// failed in the transaction, too.
func (t *preparedTx) learn(ctx context.Context) {
	for _, query := range t.missing {
		_, _ = t.prepared.prepare(ctx, query)
	}
}
