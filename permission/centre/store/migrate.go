package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the PostgreSQL advisory lock that serializes the migrations
// of replicas that start together.
const migrationLock = 0x62726b7774720001

// migrate migrates the tables.
func (s *Store) migrate(ctx context.Context) (err error) {
	if s.Shared() {
		// A lock of the session could stay: a pooler may run lock and unlock on different connections.
		tx, err := s.write.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("connect for migration: %w", err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := (Tx{View{q: tx, dialect: s.dialect, ctx: ctx}}).mayWait(); err != nil {
			return fmt.Errorf("lock for migration: %w", err)
		}
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("lock for migration: %w", err)
		}
	}
	steps, err := s.goMigrations()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.Dialect(s.dialect.name), s.write, nil,
		goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the store: %w", err)
	}
	return nil
}

// goMigrations returns the SQL files as migrations in the dialect of the database.
func (s *Store) goMigrations() ([]*goose.Migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for n, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		statements := strings.ReplaceAll(string(text), "{{serial}}", s.dialect.serial)
		steps = append(steps, goose.NewGoMigration(int64(n+1), &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			for _, statement := range strings.Split(statements, ";\n") {
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if _, err := tx.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			return nil
		}}, nil))
	}
	return steps, nil
}
