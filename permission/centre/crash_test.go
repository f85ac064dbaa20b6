package centre

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/freeport"
	double "github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/race"
)

// childEnv makes the test binary run as a permission centre. Its value is the file to which it
// appends when it makes calls to providers.
const childEnv = "BREAKWATER_TEST_CENTRE"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		database.Run(m)
	}
	fmt.Fprintln(os.Stderr, runChild())
	os.Exit(1)
}

func runChild() error {
	config, err := ReadConfig()
	if err != nil {
		return err
	}
	c, err := New(context.Background(), config, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv(childEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c.engine.Limiter = recordedLimiter{c.engine.Limiter, func(at time.Time) {
		_, _ = fmt.Fprintln(file, at.UnixNano()) // the test compares the number of lines
	}}
	return c.Run(context.Background())
}

// process is a centre in a process that can be killed.
type process struct {
	t       *testing.T
	env     []string
	admin   string
	calls   string // the file of calls
	command *exec.Cmd
}

func newProcess(t *testing.T, c Config, port int) *process {
	admin, calls := freePort(t), filepath.Join(t.TempDir(), "calls")
	return &process{t: t, admin: fmt.Sprintf("http://127.0.0.1:%d", admin), calls: calls, env: append(os.Environ(), childEnv+"="+calls, "STORE="+c.Store,
		fmt.Sprintf("LISTEN=127.0.0.1:%d", port), fmt.Sprintf("ADMIN_LISTEN=127.0.0.1:%d", admin), "CREDENTIALS_DIR="+c.CredentialsDir,
		"ACCESS_FILE="+c.AccessFile, "TOKENS_FILE="+c.TokensFile, "PROVIDER_HOSTS=127.0.0.1", "PROVIDER_NETWORKS=127.0.0.0/8")}
}

// start starts the process and waits until it is ready.
func (p *process) start() {
	p.t.Helper()
	p.command = exec.Command(os.Args[0])
	p.command.Env, p.command.Stderr = p.env, &testLog{p.t}
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, 30*time.Second, "the centre is ready", func() bool {
		r, err := http.Get(p.admin + "/readyz")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// kill sends SIGKILL.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// callTimes returns when the process made calls.
func (p *process) callTimes() *callTimes {
	p.t.Helper()
	text, err := os.ReadFile(p.calls)
	if err != nil {
		p.t.Fatal(err)
	}
	var c callTimes
	for line := range strings.Lines(string(text)) {
		at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		c.add(time.Unix(0, at))
	}
	return &c
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// doUntilSuccess retries a request until it succeeds, as the init-action-server does.
func doUntilSuccess(t *testing.T, method, url string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return
	}
	for range 600 {
		r, err := http.NewRequest(method, url, strings.NewReader(string(text)))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+serverToken)
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode < 300 {
				return
			}
		}
		time.Sleep(50 * time.Millisecond) // retry interval of the client, not a wait for a condition
	}
	t.Errorf("%s %s never succeeded", method, url)
}

// Some responses of the provider are lost, some pods are deleted while they are
// being granted, and the centre is killed repeatedly.
func TestNoGrantIsDuplicatedLostOrLeftWhenTheCentreIsKilled(t *testing.T) {
	const pods, kills = 200 / race.Slowdown, 8
	eachStore(t, func(t *testing.T, address string) {
		stub := double.New(time.Now)
		stub.SetFaults(double.Faults{Lose: 0.05, Delay: 10})
		provider := httptest.NewUnstartedServer(stub)
		provider.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		provider.Start()
		t.Cleanup(provider.Close)
		port := freePort(t)
		p := newProcess(t, testConfig(t, address), port)
		p.start()
		t.Cleanup(p.kill)
		w := &fixture{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", port), double: stub, providerURL: provider.URL}
		w.register(func(p *api.Provider) {
			p.RateLimit, p.TimeoutSeconds = api.RateLimit{PerSecond: 60, Burst: 1}, 1
			p.Retry = api.Retry{MaxCalls: 20, BackoffSeconds: 0.1}
		}, "web", "db")

		s, err := store.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()

		var clients sync.WaitGroup
		var asked atomic.Int64
		semaphore := make(chan struct{}, 40)
		for n := range pods {
			clients.Go(func() {
				semaphore <- struct{}{}
				defer func() { <-semaphore }()
				doUntilSuccess(t, "POST", w.url+"/v1/applications", podRequest(n, "web"))
				asked.Add(1)
				if n%6 == 0 || n%6 == 3 {
					if n%6 == 3 {
						// Some of these are granted by then.
						eventually(t, 3*time.Minute, "half of the pods are granted", func() bool { return stub.Stats().Granted >= pods/3 })
					}
					doUntilSuccess(t, "POST", w.url+"/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(n, "web").PodUID})
				}
			})
		}
		for range kills {
			// Kill at a random point of the work, not during start.
			calls := stub.Stats().Calls + rand.IntN(25) + 1
			eventually(t, 3*time.Minute, "calls continue", func() bool { return stub.Stats().Calls >= calls || asked.Load() == pods && settled(t, s, pods) })
			p.kill()
			p.start()
		}
		clients.Wait()
		eventually(t, 3*time.Minute, "all applications are settled", func() bool { return settled(t, s, pods) })
		p.kill()

		var want []double.Entry
		states := map[api.State]int{}
		for n := range pods {
			a, err := s.View(t.Context()).Application(lifecycle.ID(podRequest(n, "web")))
			if err != nil {
				t.Fatalf("pod %d: %v", n, err)
			}
			states[a.State]++
			if a.State == api.Granted {
				want = append(want, double.Entry{IP: a.Request.PodIPs[0], Permission: "db", Pod: a.Request.PodUID})
			}
		}
		b := stub.Stats()
		sortEntries(want)
		if diff := cmp.Diff(want, b.Current); diff != "" {
			t.Errorf("grants of the provider (+) differ from Granted applications (-):\n%s", diff)
		}
		if states[api.Granted] != pods-(pods+2)/3 || states[api.Revoked] != (pods+2)/3 {
			t.Errorf("states: %v", states)
		}
		if b.Duplicates != 0 {
			t.Errorf("%d grants were duplicated", b.Duplicates)
		}
		calls := p.callTimes()
		peak := calls.peak()
		if peak > 61 || len(calls.times) < b.Calls {
			t.Errorf("%d calls in the peak second, want at most 61 (limit 60, burst 1); %d calls, the provider received %d", peak, len(calls.times), b.Calls)
		}
		t.Logf("%d calls, %d repeated with the same key, %d granted, %d revoked, %d in the peak second",
			b.Calls, b.Repeats, b.Granted, b.Revoked, peak)
	})
}

// settled reports whether all applications are Granted or Revoked.
func settled(t *testing.T, s *store.Store, all int) bool {
	states, err := s.View(t.Context()).CountStates()
	return err == nil && states[api.Granted]+states[api.Revoked] == all
}
