package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
)

// planQuerier records how the database finds the rows of each query.
type planQuerier struct {
	*sql.DB
	dialect dialect
	plans   []string
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

// ExecContext changes nothing.
func (p *planQuerier) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return driver.RowsAffected(0), p.explain(ctx, query, args...)
}

func (p *planQuerier) explain(ctx context.Context, query string, args ...any) error {
	explain := "EXPLAIN QUERY PLAN "
	if p.dialect.numbered {
		explain = "EXPLAIN (COSTS OFF) "
	}
	rows, err := p.DB.QueryContext(ctx, explain+query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		columns := []any{&id, &parent, &unused, &detail}
		if p.dialect.numbered {
			columns = columns[3:]
		}
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		p.plans = append(p.plans, strings.TrimSpace(detail))
	}
	return rows.Err()
}

// readsAll reports whether a step of a plan reads a table whose rows are kept for the
// retention time.
func (p *planQuerier) readsAll(plan string) bool {
	if p.dialect.numbered {
		for _, table := range []string{"grants", "applications", "grant_ips", "application_ips"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				return true
			}
		}
		return strings.Contains(plan, "Index Cond: (id > ")
	}
	whole := strings.HasPrefix(plan, "SCAN ") && !strings.Contains(plan, "COVERING INDEX grants_leaked") && !strings.HasPrefix(plan, "SCAN first_rows") && !strings.HasPrefix(plan, "SCAN json_each")
	return whole || strings.Contains(plan, "PRIMARY KEY (id>?)") || strings.Contains(plan, "autoindex_applications_1 (id>?)")
}

// fill adds ended applications with a grant each: PostgreSQL chooses a plan by the
// contents. Few are Granted or due. All grants of provider p4, which cannot revoke, are Leaked.
const fill = `
INSERT INTO objects SELECT 'provider', 'p' || n, '', '', '{}', 1, 0, 0 FROM generate_series(1, 4) n;
INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version, asked)
  SELECT n::text, 'c', 'shop' || n % 100, 'web-' || n, 'uid-' || n, 'web', '{}', CASE WHEN n % 1000 = 0 THEN 'Leaked' ELSE 'Revoked' END, '', '', 1, 0, n, n, 1, 0 FROM generate_series(1, 50000) n;
INSERT INTO application_ips SELECT n::text, '10.0.' || n / 250 || '.' || n % 250 FROM generate_series(1, 50000) n;
INSERT INTO grants (application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try, due, lease, call_key, keys, touched, pending, kept)
  SELECT n::text, 0, 'db', 'p' || n % 3 + 1, 's', '', '{}', CASE WHEN n % 1000 = 0 THEN 'Leaked' ELSE 'Revoked' END, '', '', 1, 0, 0, 0, 0, CASE WHEN n % 500 = 0 THEN 1 ELSE 0 END, '', '', 0, 1, 0, '{}'
  FROM generate_series(1, 50000) n;
INSERT INTO grants (application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try, due, lease, call_key, keys, touched, pending, kept)
  SELECT n::text, 1, 'wifi', 'p4', 's', '', '{}', 'Leaked', '', '', 0, 0, 0, 0, 0, 0, '', '', 0, 1, 0, '{}' FROM generate_series(1, 10000) n;
INSERT INTO grant_ips SELECT n::text, 0, '10.0.' || n / 250 || '.' || n % 250 FROM generate_series(1, 50000) n;
ANALYZE`

// These queries run for each request or every second, so they must not read all grants
// or all applications of the retention time.
func TestFrequentQueriesReadOnlyTheRowsThatTheyReturn(t *testing.T) {
	for name, address := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "centre.db"), "PostgreSQL": database.Postgres(t)} {
		s := openAt(t, address)
		if s.dialect.numbered {
			if _, err := s.write.ExecContext(t.Context(), fill); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		for what, tc := range map[string]struct {
			index string
			query func(View) error
		}{
			"the next step of each provider": {"grants_due", func(v View) error { _, err := v.NextDue(); return err }},
			"the steps that are due":         {"grants_due", func(v View) error { _, err := v.CountDue("p1", now, 32); return err }},
			"the first steps that are due":   {"grants_due", func(v View) error { _, _ = Tx{v}.DueSteps("p1", now, 32); return nil }},
			"an answer of a provider":        {"grants_provider", func(v View) error { _, err := v.AnsweredSince("p1", now); return err }},
			"overlapping grants":             {"grant_ips_ip", func(v View) error { _, err := Tx{v}.GrantsAt([]string{"10.0.0.1", "10.0.0.2"}); return err }},
			"leaks at an address":            {"grant_ips_ip", func(v View) error { _, err := v.LeakedAt([]string{"10.0.0.1", "10.0.0.2"}); return err }},
			"applications at an address": {"application_ips_ip", func(v View) error {
				_, err := v.ApplicationsAt("c1", []string{"10.0.0.1", "10.0.0.2"}, []api.State{api.Granted}, []string{"uid-1", "uid-2"})
				return err
			}},
			"pods that have ended":           {"ended_pods", func(v View) error { _, err := v.EndedPods("c1", []string{"uid-1", "uid-2"}); return err }},
			"existing applications":          {"applications", func(v View) error { _, err := v.Existing([]string{"1", "2"}); return err }},
			"grants of applications":         {"grants", func(v View) error { _, err := v.GrantsOf([]string{"1", "2"}); return err }},
			"providers of unscheduled leaks": {"grants_unscheduled", func(v View) error { _, err := v.ProvidersOfUnscheduledLeaks(); return err }},
			"the leaks to schedule":          {"grants_unscheduled", func(v View) error { return Tx{v}.ScheduleLeaks("p4", now, 100) }},
			"steps that a clock has delayed": {"grants_due", func(v View) error { return Tx{v}.ResumeSteps(now, now) }},
			"leaks to retry":                 {"grants_leaked", func(v View) error { return Tx{v}.RetryLeaks([]string{"1000"}, "p4", now) }},
			"leaks of each provider":         {"grants_leaked", func(v View) error { _, err := v.LeakedByProvider(); return err }},
			"providers of sets":              {"links", func(v View) error { _, err := v.ProvidersOfSets([]string{"s1", "s2"}); return err }},
			"listed pods":                    {"applications_pod", func(v View) error { return Tx{v}.SetListed("c", []string{"uid-1", "uid-2"}, now) }},
			"applications of a namespace": {"applications_namespace", func(v View) error {
				_, err := v.Applications(Filter{Namespace: "shop1"}, Page{Limit: 100})
				return err
			}},
			"applications of a pod": {"applications_namespace", func(v View) error {
				_, err := v.Applications(Filter{Namespace: "shop1", Pod: "web-1"}, Page{Limit: 100})
				return err
			}},
			"a pod under another name of its cluster": {"applications_uid", func(v View) error { _, err := v.OtherNames("c1", "uid-1"); return err }},
			"leaked applications": {"applications_state", func(v View) error {
				_, err := v.Applications(Filter{States: []api.State{api.Leaked}}, Page{Limit: 100})
				return err
			}},
		} {
			t.Run(name+": "+what, func(t *testing.T) {
				p := &planQuerier{DB: s.read, dialect: s.dialect}
				if err := tc.query(View{q: p, dialect: s.dialect, ctx: t.Context()}); err != nil {
					t.Fatal(err)
				}
				uses := func(plan string) bool { return strings.Contains(plan, tc.index) }
				if !slices.ContainsFunc(p.plans, uses) || slices.ContainsFunc(p.plans, p.readsAll) {
					t.Errorf("plan: %s", strings.Join(p.plans, "; "))
				}
			})
		}
	}
}
