package centre

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// Tokens of the test users.
const (
	adminToken   = "admin-token-0123456789"
	serverToken  = "server-token-0123456789"
	otherToken   = "other-token-0123456789"
	ownerToken   = "owner-token-0123456789"
	bystandToken = "bystander-token-0123456789"
	podToken     = "pod-token-0123456789"
)

const accessFile = `
admins: [platform]
registrants: [team-a, bob]
clusters:
- name: c1
  users: [server]
- name: c2
  groups: [c2-components]
`

const tokensFile = `
- {token: admin-token-0123456789, user: alice, groups: [platform]}
- {token: server-token-0123456789, user: server}
- {token: other-token-0123456789, user: other, groups: [c2-components]}
- {token: owner-token-0123456789, user: olga, groups: [team-a]}
- {token: bystander-token-0123456789, user: bob, groups: [team-b]}
- {token: pod-token-0123456789, user: 'system:serviceaccount:shop:web', groups: ['system:serviceaccounts']}
`

// eachStore runs a test on SQLite and on PostgreSQL.
func eachStore[T subtester[T]](t T, test func(t T, address string)) {
	t.Run("sqlite", func(t T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "centre.db")) })
	t.Run("postgres", func(t T) { test(t, database.Postgres(t)) })
}

// subtester is a test or a benchmark.
type subtester[T any] interface {
	testing.TB
	Run(name string, f func(t T)) bool
}

// fixture is a replica, a provider and clients with the tokens of test users.
type fixture struct {
	t      testing.TB
	centre *Centre
	url    string
	double *double.Double
	// calls are the calls of its replicas to providers.
	calls *callTimes
	// providerURL is the URL of the double.
	providerURL string
	stop        func()
	// skipValidation: requests are not validated against the OpenAPI document.
	skipValidation bool
	// client sends the requests; http.DefaultClient if nil.
	client *http.Client
	// log is the log of the replica; warnings are written to that of the test if nil.
	log *slog.Logger
}

// testConfig is the configuration of a replica.
func testConfig(t testing.TB, store string) Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"access.yaml": accessFile, "tokens.yaml": tokensFile, "secret": "very-secret-bearer"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Config{Store: store, CredentialsDir: dir, AccessFile: filepath.Join(dir, "access.yaml"), TokensFile: filepath.Join(dir, "tokens.yaml"),
		ProviderHosts: []string{"127.0.0.1"}, ProviderNetworks: []string{"127.0.0.0/8"}, ConcurrentCallsPerProvider: 32,
		DrainTimeout: 5 * time.Second, Retention: time.Hour}
}

// newFixture starts a replica and a double.
func newFixture(t testing.TB, store string) *fixture {
	t.Helper()
	w := &fixture{t: t, double: double.New(time.Now)}
	server := httptest.NewServer(w.double)
	// Aborted connections at the end of a test are not logged.
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	w.providerURL = server.URL
	w.startReplica(testConfig(t, store))
	return w
}

// startReplica starts a replica; requests go to the last one.
func (w *fixture) startReplica(config Config) {
	w.t.Helper()
	c, err := New(w.t.Context(), config, cmp.Or(w.log, slog.New(slog.NewTextHandler(&testLog{w.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.calls == nil {
		w.calls = &callTimes{}
	}
	c.engine.Limiter = recordedLimiter{c.engine.Limiter, w.calls.add}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{
		func(ctx context.Context) error { c.engine.Run(ctx, config.DrainTimeout); return nil },
		func(ctx context.Context) error { return c.engine.PollChanges(ctx, c.notifier) },
		c.watchIssuers,
	} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Error(err)
			}
		})
	}
	server := httptest.NewServer(c.server.Handler())
	var once sync.Once
	stop := func() {
		once.Do(func() {
			close(c.stopping)
			cancel()
			running.Wait()
			server.Close()
			c.store.Close()
		})
	}
	w.t.Cleanup(stop)
	w.centre, w.url, w.stop = c, server.URL, stop
}

// testLog writes the warnings of a replica to the log of the test.
type testLog struct{ t testing.TB }

func (p *testLog) Write(line []byte) (int, error) {
	p.t.Logf("%s", bytes.TrimSpace(line))
	return len(line), nil
}

// do sends a request and returns the status and the api.Error; out receives the
// body of a success.
func (w *fixture) do(token, method, path string, body, out any, header ...string) (int, api.Error) {
	w.t.Helper()
	var sent []byte
	switch b := body.(type) {
	case nil:
	case string:
		sent = []byte(b)
	default:
		var err error
		if sent, err = json.Marshal(b); err != nil {
			w.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader(sent))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := cmp.Or(w.client, http.DefaultClient).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if !w.skipValidation {
		validate(w.t, r, sent, response, text)
	}
	var problem api.Error
	if response.StatusCode >= 400 {
		if err := json.Unmarshal(text, &problem); err != nil || problem.Reason == "" || problem.Message == "" {
			w.t.Fatalf("%s %s: status %d without an api.Error: %s", method, path, response.StatusCode, text)
		}
	} else if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			w.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return response.StatusCode, problem
}

// mustDo is do for requests that must succeed.
func (w *fixture) mustDo(token, method, path string, body, out any, header ...string) {
	w.t.Helper()
	if status, problem := w.do(token, method, path, body, out, header...); status >= 300 {
		w.t.Fatalf("%s %s: %d %+v", method, path, status, problem)
	}
}

// register registers the double as a provider, and a set of permissions.
func (w *fixture) register(change func(*api.Provider), set string, permissions ...string) {
	w.t.Helper()
	p := double.Registration("double", w.providerURL, "platform")
	p.RateLimit, p.Owners = api.RateLimit{PerSecond: 1000, Burst: 10}, []string{"team-a", "team-b"}
	p.CredentialsRef, p.AllowHTTP, p.TimeoutSeconds = "secret", true, 30 // the test may hold a call
	p.Retry = api.Retry{MaxCalls: 3, BackoffSeconds: 0.05, PollSeconds: 0.1}
	if change != nil {
		change(&p)
	}
	w.mustDo(adminToken, "POST", "/v1/providers", p, nil)
	for _, name := range permissions {
		w.mustDo(ownerToken, "POST", "/v1/permissions", api.Permission{Meta: api.Meta{Name: name, Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": name}}, nil)
	}
	w.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: set, Owner: "team-a"}, Permissions: permissions,
		Pods: []api.PodPattern{{Namespace: "*"}}}, nil)
}

// podRequest is the request of pod n.
func podRequest(n int, set string) api.ApplicationRequest {
	return api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: fmt.Sprintf("pod-%d", n), PodUID: fmt.Sprintf("uid-%05d", n),
		PodIPs: []string{fmt.Sprintf("10.0.%d.%d", n/250, n%250+1)}, ServiceAccount: "default", Set: set}
}

// request requests a permission set for a pod.
func (w *fixture) request(r api.ApplicationRequest) api.Application {
	w.t.Helper()
	var a api.Application
	w.mustDo(serverToken, "POST", "/v1/applications", r, &a)
	return a
}

// waitForState waits with long polls until an application is in a state.
func (w *fixture) waitForState(id string, state api.State) api.Application {
	w.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	var a api.Application
	for time.Now().Before(deadline) {
		w.mustDo(serverToken, "GET", fmt.Sprintf("/v1/applications/%s?wait=5s&version=%d", url.PathEscape(id), a.Version), nil, &a)
		if a.State == state {
			return a
		}
	}
	w.t.Fatalf("application %s is %s (%s: %s), want %s: %+v", id, a.State, a.Reason, a.Message, state, a.Permissions)
	return a
}

// eventually waits for a condition.
func eventually(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("timeout after %s: %s", within, what)
		}
		<-tick.C
	}
}

func sortEntries(entries []double.Entry) {
	slices.SortFunc(entries, func(a, b double.Entry) int {
		return slices.Compare([]string{a.IP, a.Permission, a.Pod}, []string{b.IP, b.Permission, b.Pod})
	})
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
