package database

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

var (
	// postgres loses data if the machine crashes; durable does not.
	postgres, durable server
	databases         atomic.Int64
)

// Postgres starts a server if needed and returns the DSN of a new, empty
// database.
func Postgres(t testing.TB) string {
	t.Helper()
	return PostgresAt(t, "127.0.0.1")
}

// DurablePostgres is Postgres with fsync, for benchmarks.
func DurablePostgres(t testing.TB) string {
	t.Helper()
	return durable.database(t, "127.0.0.1", "on")
}

// PostgresAt is Postgres on an address of this machine that pods of the
// embedded cluster reach. The first call of a process sets the address.
func PostgresAt(t testing.TB, host string) string {
	t.Helper()
	// The data is temporary, so fsync is off.
	return postgres.database(t, host, "off")
}

// database starts the server if needed and returns the DSN of a new database.
func (s *server) database(t testing.TB, host, fsync string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	need(t, len(found) > 0, "PostgreSQL", "postgresql")
	slices.Sort(found)
	s.once.Do(func() { s.err = s.startPostgres(filepath.Dir(found[len(found)-1]), host, fsync) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	admin, err := sql.Open("pgx", s.postgresAddress("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.postgresAddress(name)
}

func (s *server) postgresAddress(name string) string {
	return fmt.Sprintf("postgres://test:test@%s/%s?sslmode=disable", net.JoinHostPort(s.host, strconv.Itoa(s.port)), name)
}

func (s *server) startPostgres(bin, host, fsync string) error {
	s.host = host
	owner, err := credentialOf("postgres")
	if err != nil {
		return err
	}
	if err := s.prepare("postgres", owner); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if err := runCommand(command(owner, s.dir, filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")); err != nil {
		return err
	}
	// Any client that reaches the listen address is trusted.
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte("host all all all trust\n"), 0o600); err != nil {
		return err
	}
	if s.port, err = freeport.Find(context.Background()); err != nil {
		return err
	}
	server := command(owner, s.dir, filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses="+host, "-c", "unix_socket_directories=", "-c", "fsync="+fsync, "-c", "max_connections=300")
	return s.start(server, func() error {
		db, err := sql.Open("pgx", s.postgresAddress("postgres"))
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return db.PingContext(context.Background())
	})
}
