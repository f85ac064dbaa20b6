package store

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/database"
)

// A replica that is lost must not keep its locks.
func TestPostgreSQLEndsTheTransactionOfALostReplica(t *testing.T) {
	address := database.Postgres(t)
	for parameters, want := range map[string]string{"": "10s", "&idle_in_transaction_session_timeout=7s": "7s"} {
		s := openAt(t, address+parameters)
		for name, want := range map[string]string{"idle_in_transaction_session_timeout": want, "tcp_user_timeout": "20000", "tcp_keepalives_idle": "10"} {
			var got string
			if err := s.write.QueryRowContext(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %s, %v; want %s", name, got, err, want)
			}
		}
	}
	s := openAt(t, address)
	lost, err := s.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lost.Rollback() }()
	names := []string{"a"}
	if err := (Tx{View{q: lost, dialect: s.dialect, ctx: t.Context()}}).LockNames(names); err != nil {
		t.Fatal(err)
	}
	// Only for this transaction: the one that waits for its lock may be slow.
	if _, err := lost.ExecContext(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '100ms'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx Tx) error { return tx.LockNames(names) }); err != nil {
		t.Error(err)
	}
}

// A migration holds its lock on one connection and writes on another.
func TestAPoolOfOneConnectionIsRejected(t *testing.T) {
	address := database.Postgres(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Open(ctx, address+"&pool_max_conns=1")
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("with one connection: %v, want an error that names pool_max_conns", err)
	}
	s, err = Open(ctx, address+"&pool_max_conns=2")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// slow is the reader of an export, or the writer of an import, that begins when the session of
// the centre has waited for it for longer than the limit.
type slow struct {
	io.Writer
	io.Reader
	t     testing.TB
	s     *Store
	waits *bool
}

func (w slow) wait() {
	for deadline := time.Now().Add(10 * time.Second); !*w.waits && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err := w.s.read.QueryRowContext(w.t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'idle in transaction' AND clock_timestamp() - state_change > interval '700 milliseconds')`).Scan(w.waits); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w slow) Write(p []byte) (int, error) {
	w.wait()
	return w.Writer.Write(p)
}

func (w slow) Read(p []byte) (int, error) {
	if len(p) > 100 {
		p = p[:100] // so that the transaction begins before the end
	}
	n, err := w.Reader.Read(p)
	if err == io.EOF {
		w.wait()
	}
	return n, err
}

func TestASlowImportOrExportIsNotEnded(t *testing.T) {
	address := database.Postgres(t)
	// The observer migrates, because the limit could end a migration.
	observer := openAt(t, address)
	limited := openAt(t, address+"&idle_in_transaction_session_timeout=500ms")
	text := `{"format":"permissioncentre/1"}` + "\n" + `{"table":"objects","values":{"kind":"provider","name":"p","owner":"o","description":"` + strings.Repeat("x", 9000) +
		`","body":"{}","version":1,"created":0,"updated":0}}` + "\n"
	var waited [2]bool
	if err := limited.Import(t.Context(), slow{t: t, s: observer, waits: &waited[0], Reader: strings.NewReader(text)}); err != nil {
		t.Error(err)
	}
	if err := limited.Export(t.Context(), slow{t: t, s: observer, waits: &waited[1], Writer: io.Discard}); err != nil {
		t.Error(err)
	}
	if waited != [2]bool{true, true} {
		t.Errorf("the transactions have waited: %v", waited)
	}
}

// After a failover the address of the database may still lead to the former primary, which is then
// a standby or read-only.
func TestAReadOnlyConnectionIsNotUsed(t *testing.T) {
	s := openAt(t, database.Postgres(t))
	admin, err := s.write.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	alter := func(change string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), "SET default_transaction_read_only = off"); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.ExecContext(t.Context(), "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' "+change+"'; END $$"); err != nil {
			t.Fatal(err)
		}
	}
	write := func() error {
		return s.Write(t.Context(), func(tx Tx) error { return tx.AddEndedPod("c1", "uid", time.Now()) })
	}

	alter("SET default_transaction_read_only = on")
	s.pool.Reset()
	if err := write(); err == nil {
		t.Error("a read-only database was written")
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("the centre is ready with a read-only database")
	}
	alter("RESET default_transaction_read_only")
	if err := write(); err != nil {
		t.Errorf("after the failover: %v", err)
	}

	// A proxy may keep the connection while it changes the server.
	open, err := s.write.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.ExecContext(t.Context(), "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if err := write(); err == nil {
		t.Fatal("a read-only session was written")
	}
	if err := write(); err != nil {
		t.Errorf("the connection of the read-only session is still in use: %v", err)
	}
}
