package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// readers is how many statements may read SQLite beside the one that writes.
const readers = 4

// pragmas make SQLite keep what it has acknowledged through a loss of power:
// a grant whose intent is lost could not be taken back.
const pragmas = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// Store is an open database. Transactions write, all else reads.
type Store struct {
	dialect dialect
	write   *sql.DB
	read    *sql.DB
	pool    *pgxpool.Pool // PostgreSQL only
	group   group         // SQLite only
}

// Open opens sqlite:<path> or postgres://…, and migrates it. It holds until
// Close.
func Open(ctx context.Context, address string) (*Store, error) {
	s, err := connect(ctx, address)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func connect(ctx context.Context, address string) (*Store, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return connectSQLite(path)
	}
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, fmt.Errorf("the store's address must begin with sqlite: or postgres://")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// Its text holds the password.
		return nil, fmt.Errorf("the store's address is no address of PostgreSQL")
	}
	if u, err := url.Parse(address); err == nil && !u.Query().Has("pool_max_conns") {
		config.MaxConns = 32
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	return &Store{dialect: postgres, write: db, read: db, pool: pool}, nil
}

func connectSQLite(path string) (*Store, error) {
	// Made here: the driver would let everybody read it.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	write, err := sql.Open("sqlite", "file:"+path+pragmas)
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	// One writer is all that SQLite takes; more would only be told to wait.
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", "file:"+path+strings.Replace(pragmas, "_txlock=immediate", "_pragma=query_only(1)", 1))
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	read.SetMaxOpenConns(readers)
	return &Store{dialect: sqlite, write: write, read: read}, nil
}

// Close closes the database.
func (s *Store) Close() {
	_ = s.read.Close()
	_ = s.write.Close()
	if s.pool != nil {
		s.pool.Close()
	}
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.read.PingContext(ctx) }

// Writer is the database for a queue that keeps its jobs in it.
func (s *Store) Writer() *sql.DB { return s.write }

// Pool is PostgreSQL's pool, nil for SQLite.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Shared says whether other replicas may use the same database.
func (s *Store) Shared() bool { return s.pool != nil }
