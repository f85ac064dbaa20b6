package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// planQuerier records how SQLite finds the rows of each query.
type planQuerier struct {
	*sql.DB
	plans []string
}

func (p *planQuerier) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.explain(ctx, query, args...); err != nil {
		return nil, err
	}
	return p.DB.QueryContext(ctx, query, args...)
}

func (p *planQuerier) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	_ = p.explain(ctx, query, args...)
	return p.DB.QueryRowContext(ctx, query, args...)
}

func (p *planQuerier) explain(ctx context.Context, query string, args ...any) error {
	rows, err := p.DB.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return err
		}
		p.plans = append(p.plans, detail)
	}
	return rows.Err()
}

// These queries run for each request or every second, so they must not read all grants
// or all applications of the retention time.
func TestFrequentQueriesReadOnlyTheRowsThatTheyReturn(t *testing.T) {
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	for name, query := range map[string]func(View) error{
		"the next step of each provider": func(v View) error { _, err := v.NextDue(); return err },
		"the steps that are due":         func(v View) error { _, err := v.CountDue("p", now, 32); return err },
		"the first step that is due":     func(v View) error { _, _, _ = Tx{v}.FirstDue("p", now); return nil },
		"overlapping grants":             func(v View) error { _, err := Tx{v}.Overlap(Grant{}, "uid", []string{"10.0.0.1"}); return err },
		"leaks at an address":            func(v View) error { _, err := v.LeakedAt([]string{"10.0.0.1", "10.0.0.2"}); return err },
		"leaks of each provider":         func(v View) error { _, err := v.LeakedByProvider(); return err },
		"applications of a namespace": func(v View) error {
			_, err := v.Applications(Filter{Namespace: "shop"}, Page{Limit: 100})
			return err
		},
		"applications of a pod": func(v View) error {
			_, err := v.Applications(Filter{Namespace: "shop", Pod: "web-0"}, Page{Limit: 100})
			return err
		},
		"leaked applications": func(v View) error {
			_, err := v.Applications(Filter{States: []api.State{api.Leaked}}, Page{Limit: 100})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planQuerier{DB: s.read}
			if err := query(View{q: p, dialect: s.dialect, ctx: t.Context()}); err != nil {
				t.Fatal(err)
			}
			if len(p.plans) == 0 {
				t.Fatal("no query")
			}
			for _, plan := range p.plans {
				whole := strings.HasPrefix(plan, "SCAN ") && !strings.Contains(plan, "grants_leaked") && !strings.HasPrefix(plan, "SCAN steps")
				if whole || strings.Contains(plan, "PRIMARY KEY (id>?)") || strings.Contains(plan, "autoindex_applications_1 (id>?)") {
					t.Errorf("plan: %s", strings.Join(p.plans, "; "))
				}
			}
		})
	}
}
