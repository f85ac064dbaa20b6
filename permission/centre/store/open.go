package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// maxReaders is the number of SQLite connections for reading.
const maxReaders = 4

// minConnections is the minimum size of the PostgreSQL pool: a migration holds its lock on one
// connection and writes on another.
const minConnections = 2

// pragmas make committed SQLite transactions survive a power failure: a grant
// whose intent is lost could not be revoked.
const pragmas = "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// sessionParameters let PostgreSQL end the transaction, with its locks, of a replica that is
// lost or does not continue: after 10 s without a statement, or if it does not acknowledge
// packets for about 20 s. Only the transactions of an export and an import wait for something outside of
// the database; mayWait turns the 10 s off for them. The DSN may override them all.
var sessionParameters = map[string]string{
	"idle_in_transaction_session_timeout": "10s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "2",
	"tcp_user_timeout":                    "20s",
}

// Store is an open database. Only transactions write.
type Store struct {
	dialect dialect
	write   *sql.DB
	read    *sql.DB
	pool    *pgxpool.Pool // PostgreSQL only
	// SQLite only: the file, the group commit, and the prepared statements of both connections.
	path                   string
	commits                sharedCommit
	prepared, preparedRead prepared
	// background bounds the connections of WriteInBackground; nil for SQLite.
	background chan struct{}
}

// Open opens sqlite:<path> or postgres://… and migrates the schema. The caller
// closes the Store.
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
		return nil, fmt.Errorf("invalid STORE: must begin with sqlite: or postgres://")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// The error text contains the password.
		return nil, fmt.Errorf("invalid PostgreSQL DSN")
	}
	if u, err := url.Parse(address); err == nil && !u.Query().Has("pool_max_conns") {
		config.MaxConns = 32
	}
	if config.MaxConns < minConnections {
		return nil, fmt.Errorf("invalid PostgreSQL DSN: pool_max_conns is %d; set it to %d or more, or remove it", config.MaxConns, minConnections)
	}
	for name, value := range sessionParameters {
		if _, set := config.ConnConfig.RuntimeParams[name]; !set {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	requireWritable(&config.ConnConfig.Config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	return &Store{dialect: postgres, write: db, read: db, pool: pool, background: make(chan struct{}, config.MaxConns/2)}, nil
}

// readOnlyTransaction is the code of PostgreSQL for a write in a read-only session.
const readOnlyTransaction = "25006"

// requireWritable makes the pool reject a read-only server if target_session_attrs of the DSN is unset or any,
// and close the connection of a session that became read-only. After a failover, the address may lead
// to the former primary, and a proxy may keep connections to it.
func requireWritable(config *pgconn.Config) {
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	keep := config.OnPgError
	config.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != readOnlyTransaction && keep(c, err)
	}
}

func connectSQLite(path string) (*Store, error) {
	// The driver would create a world-readable file.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	// SQLite reads the name as a URI.
	name := "file:" + strings.NewReplacer("%", "%25", "#", "%23", "?", "%3f").Replace(path)
	write, err := sql.Open("sqlite", name+pragmas)
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	// SQLite has one writer; more connections would only wait for its lock.
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", name+strings.Replace(pragmas, "_txlock=immediate", "_pragma=query_only(1)", 1))
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	read.SetMaxOpenConns(maxReaders)
	return &Store{dialect: sqlite, path: path, write: write, read: read, prepared: prepared{db: write}, preparedRead: prepared{db: read}}, nil
}

// Close closes the database.
func (s *Store) Close() {
	s.prepared.close()
	s.preparedRead.close()
	_ = s.read.Close()
	_ = s.write.Close()
	if s.pool != nil {
		s.pool.Close()
	}
}

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.read.PingContext(ctx) }

// Writer is the database for tests that change what the centre has stored.
func (s *Store) Writer() *sql.DB { return s.write }

// Shared reports whether other replicas may use the same database.
func (s *Store) Shared() bool { return s.pool != nil }
