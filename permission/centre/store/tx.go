package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotFound is returned if a row does not exist.
var ErrNotFound = errors.New("not found")

// querier is a transaction or the database for reading.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// View runs statements inside or outside a transaction.
type View struct {
	q       querier
	dialect dialect
	ctx     context.Context
}

// Tx is a View that may write.
type Tx struct{ View }

// View reads outside a transaction.
func (s *Store) View(ctx context.Context) View {
	v := View{q: s.read, dialect: s.dialect, ctx: ctx}
	if !s.Shared() {
		v.q = preparedReader{s.read, &s.preparedRead}
	}
	return v
}

// Write runs f in a transaction, which is rolled back if f returns an error. f
// may run in another goroutine.
func (s *Store) Write(ctx context.Context, f func(Tx) error) error {
	if !s.Shared() {
		return s.commits.write(ctx, s, f)
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(Tx{View{q: tx, dialect: s.dialect, ctx: ctx}}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// WriteInBackground is Write for the work that no user waits for. It uses at most half
// of the connections to PostgreSQL, so that the work for a provider does not delay
// requests.
func (s *Store) WriteInBackground(ctx context.Context, f func(Tx) error) error {
	if s.background != nil {
		select {
		case s.background <- struct{}{}:
			defer func() { <-s.background }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Write(ctx, f)
}

// lockNotAvailable is the code of PostgreSQL for the end of lock_timeout.
const lockNotAvailable = "55P03"

// LimitLockWait bounds the wait for each lock of the transaction; see LockTimeout. SQLite has
// one writer and no such locks.
func (t Tx) LimitLockWait(limit time.Duration) error {
	if !t.dialect.numbered {
		return nil
	}
	_, err := t.exec(fmt.Sprintf("SET LOCAL lock_timeout = %d", limit.Milliseconds()))
	return err
}

// LockTimeout reports whether another transaction held a lock for too long.
func LockTimeout(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == lockNotAvailable
}

// WouldFailAgain reports whether another transaction would fail, too, because the error is not
// that of a statement: the database could not be reached, or the context has ended.
func WouldFailAgain(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(net.Error))
}

func (v View) exec(statement string, args ...any) (int64, error) {
	result, err := v.q.ExecContext(v.ctx, v.dialect.bind(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (v View) row(statement string, args ...any) *sql.Row {
	return v.q.QueryRowContext(v.ctx, v.dialect.bind(statement), args...)
}

// each calls scan for every row.
func (v View) each(scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := v.q.QueryContext(v.ctx, v.dialect.bind(statement), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (v View) count(statement string, args ...any) (int, error) {
	var n int
	err := v.row(statement, args...).Scan(&n)
	return n, err
}

// micros returns t in microseconds since 1970; 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
