package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/poll"
)

func TestMain(m *testing.M) { database.Run(m) }

// After the migration of a store with a queue of jobs, a step is due when its job was
// due. A step whose call is in progress is due when its run expires.
func TestAStoreWithAQueueOfJobsIsMigrated(t *testing.T) {
	for name, address := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "centre.db"), "postgres": database.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := s.goMigrations()
			if err != nil {
				t.Fatal(err)
			}
			old, err := goose.NewProvider(goose.Dialect(s.dialect.name), s.write, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.UpTo(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				"CREATE TABLE river_job (id BIGINT)",
				`INSERT INTO objects (kind, name, owner, description, body, version, created, updated) VALUES ('provider', 'p', '', '', '{}', 1, 0, 0)`,
				`INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version)
					VALUES ('a', 'c1', 'shop', 'web', 'uid', 'web', '{}', 'Applying', '', '', 1, 0, 0, 0, 1)`,
				insertOldGrant(0, 1_700_000_000_000_000, "", 0),
				insertOldGrant(1, 0, "run", 1_700_000_010_000_000),
				insertOldGrant(2, 0, "", 0),
			} {
				if _, err := s.write.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			s.Close()

			if s, err = Open(t.Context(), address); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			grants, err := s.View(t.Context()).Grants("a")
			if err != nil || len(grants) != 3 {
				t.Fatalf("%d grants, %v", len(grants), err)
			}
			began := time.Unix(1_700_000_000, 0)
			if !grants[0].Due.Equal(began) || !grants[1].Due.Equal(began.Add(10*time.Second)) || grants[1].RunID != "run" || !grants[2].Due.IsZero() {
				t.Errorf("grants: %+v", grants)
			}
			if _, err := s.write.ExecContext(t.Context(), "SELECT * FROM river_job"); err == nil {
				t.Error("the queue still exists")
			}
		})
	}
}

func insertOldGrant(ordinal int, due int64, lease string, leaseUntil int64) string {
	return fmt.Sprintf(`INSERT INTO grants (application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try,
		step, job, due, lease, lease_until, call_key, keys, touched, pending, kept)
		VALUES ('a', %d, 'db', 'p', 'db', 'team-a', '{}', 'Applying', '', '', 0, 0, 0, 0, 0, 3, 7, %d, '%s', %d, 'k', 0, 1, 0, 'null')`, ordinal, due, lease, leaseUntil)
}

// A pooler can run the statements of a session on several connections, and then leaves a lock of a
// session behind. Migrations may take longer than idle_in_transaction_session_timeout.
func TestTheLockOfAMigrationBelongsToATransaction(t *testing.T) {
	address := database.Postgres(t)
	observer := openAt(t, address)
	slow, err := observer.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback() }()
	if _, err := slow.ExecContext(t.Context(), "LOCK TABLE goose_db_version"); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), address+"&idle_in_transaction_session_timeout=500ms")
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	poll.Require(t, 10*time.Millisecond, 10*time.Second, "the transaction with the lock", func(ctx context.Context) error {
		var state string
		return observer.read.QueryRowContext(ctx, `SELECT state FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND datname = current_database()
			AND state = 'idle in transaction' AND clock_timestamp() - state_change > interval '700 milliseconds'`).Scan(&state)
	})
	if err := slow.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
