package centre

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
)

const (
	benchPods    = 2000
	benchClients = 64
)

// BenchmarkApplications measures how many applications per second are requested, called for
// and granted, on a store that syncs each commit to disk:
//
//   - bare: the same rows, in the three transactions that each application needs at least (the
//     request, the intent and the result of the call), with prepared statements and nothing else;
//   - engine: clients call the engine, and the provider is in memory;
//   - http: clients and the provider use HTTP.
//
// Bare is measured before and after the others, because the machine may be shared.
func BenchmarkApplications(b *testing.B) {
	for name, address := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(b.TempDir(), "centre.db") },
		"postgres": func() string { return database.DurablePostgres(b) },
	} {
		b.Run(name, func(b *testing.B) {
			var bare, engine, overHTTP float64
			for range b.N {
				before := benchBare(b, address())
				engine += benchEngine(b, address())
				overHTTP += benchHTTP(b, address())
				bare += (before + benchBare(b, address())) / 2
			}
			n := float64(b.N)
			b.ReportMetric(bare/n, "bare/s")
			b.ReportMetric(engine/n, "engine/s")
			b.ReportMetric(overHTTP/n, "http/s")
			b.ReportMetric(engine/bare, "engine/bare")
			b.ReportMetric(overHTTP/bare, "http/bare")
		})
	}
}

// concurrently calls do for each pod, from a number of clients.
func concurrently(do func(n int)) {
	var clients sync.WaitGroup
	pods := make(chan int)
	for range benchClients {
		clients.Go(func() {
			for n := range pods {
				do(n)
			}
		})
	}
	for n := range benchPods {
		pods <- n
	}
	close(pods)
	clients.Wait()
}

// measureRate returns the applications per second until all are granted.
func measureRate(b *testing.B, c *Centre, request func(n int)) float64 {
	b.Helper()
	began := time.Now()
	concurrently(request)
	eventually(b, 5*time.Minute, "all applications are granted", func() bool {
		states, err := c.store.View(b.Context()).CountStates()
		return err == nil && states[api.Granted] == benchPods
	})
	return benchPods / time.Since(began).Seconds()
}

func fastProvider(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: 10000, Burst: 100} }

func benchHTTP(b *testing.B, address string) float64 {
	b.Helper()
	w := newFixture(b, address)
	w.register(fastProvider, "web", "db")
	w.skipValidation = true
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchClients}}
	defer w.stop()
	return measureRate(b, w.centre, func(n int) { w.request(podRequest(n, "web")) })
}

// benchProvider grants at once.
type benchProvider struct{}

func (benchProvider) Client(api.Provider) (provider.Client, error) { return benchProvider{}, nil }

func (benchProvider) Call(context.Context, provider.Call) provider.Result {
	return provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
}

func benchEngine(b *testing.B, address string) float64 {
	b.Helper()
	w := newFixture(b, address)
	w.register(fastProvider, "web", "db")
	w.stop()
	c, err := New(b.Context(), testConfig(b, address), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer c.store.Close()
	c.engine.Clients = benchProvider{}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { c.engine.Run(ctx, time.Second) })
	defer running.Wait()
	defer cancel()
	return measureRate(b, c, func(n int) {
		if _, _, _, err := c.engine.Request(ctx, podRequest(n, "web"), "server"); err != nil {
			b.Error(err)
		}
	})
}

// bareTransactions are the statements of the transactions of an application. $1 is its id.
var bareTransactions = [][]string{
	{
		`INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version, asked)
			VALUES ($1, 'c1', 'shop', 'pod-' || $1, 'uid-' || $1, 'web', $2, 'Requested', 'Requested', 'no provider has been called', 1, 0, $3, $3, 1, 0)`,
		`INSERT INTO application_ips (application, ip) VALUES ($1, '10.' || $1)`,
		`INSERT INTO grants (application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try, due, lease, call_key, keys, touched, pending, kept)
			VALUES ($1, 0, 'db', 'double', 'db', 'team-a', '{"name":"db"}', 'Requested', 'Requested', '', 0, 0, $2, $2, 0, $2, '', '', 1, 0, 0, 'null')`,
		`INSERT INTO grant_ips (application, ordinal, ip) VALUES ($1, 0, '10.' || $1)`,
		`INSERT INTO history (application, time, permission, state_from, state_to, attempt, reason, message, who) VALUES ($1, $2, '', '', 'Requested', 1, 'Requested', '', 'server')`,
	},
	{
		`UPDATE grants SET state = 'Applying', reason = 'CallingProvider', message = 'the provider is being called', since = $2, due = $2, lease = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', call_key = $1 || '-0-1', touched = 1
			WHERE application = $1 AND ordinal = 0`,
		`UPDATE applications SET state = 'Applying', reason = 'CallingProvider', message = '0 of 1 permissions are granted; db: the provider is being called', updated = $2, version = 2 WHERE id = $1`,
		`INSERT INTO history (application, time, permission, state_from, state_to, attempt, reason, message, who)
			VALUES ($1, $2, 'db', 'Requested', 'Applying', 1, 'CallingProvider', 'the provider is being called', ''), ($1, $2, '', 'Requested', 'Applying', 1, 'CallingProvider', '0 of 1 permissions are granted', '')`,
	},
	{
		`UPDATE grants SET state = 'Granted', reason = 'Granted', message = '', since = $2, calls = 1, began = $2, due = 0, lease = '' WHERE application = $1 AND ordinal = 0`,
		`UPDATE applications SET state = 'Granted', reason = 'Granted', message = 'all 1 permissions are granted', updated = $2, version = 3 WHERE id = $1`,
		`INSERT INTO history (application, time, permission, state_from, state_to, attempt, reason, message, who)
			VALUES ($1, $2, 'db', 'Applying', 'Granted', 1, 'Granted', '', ''), ($1, $2, '', 'Applying', 'Granted', 1, 'Granted', 'all 1 permissions are granted', '')`,
	},
}

func benchBare(b *testing.B, address string) float64 {
	b.Helper()
	s, err := store.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var transactions [][]*sql.Stmt
	for _, statements := range bareTransactions {
		var prepared []*sql.Stmt
		for _, text := range statements {
			if !s.Shared() {
				text = strings.NewReplacer("$1", "?1", "$2", "?2", "$3", "?3").Replace(text)
			}
			statement, err := s.Writer().PrepareContext(b.Context(), text)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = statement.Close() }()
			prepared = append(prepared, statement)
		}
		transactions = append(transactions, prepared)
	}
	request := fmt.Sprintf(`{"cluster":"c1","namespace":"shop","pod":"pod","podUID":"uid","podIPs":["10.0.0.1"],"serviceAccount":"default","set":"web","padding":"%050d"}`, 0)
	began := time.Now()
	concurrently(func(n int) {
		now := time.Now().UnixMicro()
		for _, statements := range transactions {
			if err := bareTransaction(b.Context(), s.Writer(), statements, strconv.Itoa(n), now, request); err != nil {
				b.Error(err)
			}
		}
	})
	return benchPods / time.Since(began).Seconds()
}

func bareTransaction(ctx context.Context, db *sql.DB, statements []*sql.Stmt, id string, now int64, request string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for i, statement := range statements {
		args := []any{id, now}
		if i == 0 && len(statements) == 5 {
			args = []any{id, request, now}
		} else if len(statements) == 5 && (i == 1 || i == 3) {
			args = args[:1]
		}
		if _, err := tx.StmtContext(ctx, statement).ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}
