package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// fixture is a client with a scripted server and a fake clock.
type fixture struct {
	*Client
	calls  atomic.Int64
	tokens chan string
	slept  time.Duration
}

func newFixture(t *testing.T, script func(call int64, w http.ResponseWriter)) *fixture {
	t.Helper()
	w := &fixture{tokens: make(chan string, 100)}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var body protocol.Request
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || fmt.Sprint(body.Sets) != "[a b]" || r.Method != http.MethodPost || r.URL.Path != protocol.AuthorizePath {
			t.Errorf("%s %s: %v %v", r.Method, r.URL, body, err)
		}
		w.tokens <- r.Header.Get("Authorization")
		script(w.calls.Add(1), rw)
	}))
	t.Cleanup(server.Close)
	w.Client = New(Config{URL: server.URL + protocol.AuthorizePath, Sets: []string{"a", "b"}, TokenFile: file, Deadline: time.Minute}, io.Discard)
	w.Sleep = func(_ context.Context, d time.Duration) {
		w.slept += d
		// The kubelet rotates the token.
		if err := os.WriteFile(file, []byte("later"), 0o600); err != nil {
			t.Error(err)
		}
	}
	return w
}

func respond(states ...protocol.State) func(int64, http.ResponseWriter) {
	return func(call int64, w http.ResponseWriter) {
		state := states[min(int(call), len(states))-1]
		_, _ = fmt.Fprintf(w, "\n\n{\"state\":%q,\"message\":\"call %d\"}\n", state, call)
	}
}

func TestTheExitCodeFollowsTheDecisionOfTheServer(t *testing.T) {
	rejects := func(status int) func(int64, http.ResponseWriter) {
		return func(call int64, w http.ResponseWriter) {
			if call == 1 {
				w.WriteHeader(status)
				// The state in the body of an error response is ignored.
				_, _ = io.WriteString(w, `{"state":"Granted"}`)
				return
			}
			respond(protocol.Granted)(call, w)
		}
	}
	for name, tc := range map[string]struct {
		script func(int64, http.ResponseWriter)
		code   int
		calls  int64
	}{
		"granted at once":        {respond(protocol.Granted), protocol.ExitGranted, 1},
		"denied at once":         {respond(protocol.Denied), protocol.ExitDenied, 1},
		"failed, then granted":   {respond(protocol.Failed, protocol.Failed, protocol.Granted), protocol.ExitGranted, 3},
		"waiting, then granted":  {respond(protocol.Waiting, protocol.Granted), protocol.ExitGranted, 2},
		"rejected, then granted": {rejects(http.StatusForbidden), protocol.ExitGranted, 2},
		"too many, then granted": {rejects(http.StatusTooManyRequests), protocol.ExitGranted, 2},
		"aborted, then granted":  {abortFirst, protocol.ExitGranted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, tc.script)
			result := w.Run(t.Context())
			if result.Code != tc.code || w.calls.Load() != tc.calls {
				t.Errorf("%+v after %d calls, want %d after %d", result, w.calls.Load(), tc.code, tc.calls)
			}
		})
	}
}

func abortFirst(call int64, w http.ResponseWriter) {
	if call > 1 {
		respond(protocol.Granted)(call, w)
		return
	}
	_, _ = io.WriteString(w, "\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestTheTokenIsReadForEachRequest(t *testing.T) {
	w := newFixture(t, respond(protocol.Failed, protocol.Granted))
	w.Run(t.Context())
	if a, b := <-w.tokens, <-w.tokens; a != "Bearer first" || b != "Bearer later" {
		t.Errorf("sent %q, then %q", a, b)
	}
}

func TestAnUndecidedFirstCallIsNotReportedAsUnsent(t *testing.T) {
	end := make(chan struct{})
	w := newFixture(t, func(_ int64, rw http.ResponseWriter) {
		_, _ = io.WriteString(rw, "\n")
		_ = http.NewResponseController(rw).Flush()
		<-end // the server waits for the decision
	})
	t.Cleanup(func() { close(end) })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("terminated"))
	defer cancel()
	const want = "terminated before a decision, last result: the server has not decided yet"
	if result := w.Run(ctx); result.Code != protocol.ExitUndecided || result.Message != want {
		t.Errorf("%+v, want %q", result, want)
	}
}

// An exit is a failure of the pod: it counts against the backoffLimit of a Job, and as a restart for self-healing. The
// webhook of earlier versions names the restartPolicy of the pod, and INIT_ACTION_RESTART_POLICY is in their pods.
func TestTheClientBeginsTheNextRoundAtTheDeadline(t *testing.T) {
	for _, policy := range []string{"", "Always", "OnFailure", "Never"} {
		t.Run("restartPolicy "+policy, func(t *testing.T) {
			w := newFixture(t, respond(protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Denied))
			config, err := ReadConfig(func(key string) string {
				return map[string]string{protocol.EnvServer: strings.TrimSuffix(w.URL, protocol.AuthorizePath), protocol.EnvSets: "a,b", protocol.EnvTokenFile: w.TokenFile,
					protocol.EnvDeadline: "200ms", "INIT_ACTION_RESTART_POLICY": policy}[key]
			})
			if err != nil {
				t.Fatal(err)
			}
			w.Config = config
			pauses := 0
			w.Sleep = func(ctx context.Context, _ time.Duration) {
				if pauses++; pauses%3 == 0 {
					<-ctx.Done() // the deadline of the round passes
				}
			}
			if result := w.Run(t.Context()); result.Code != protocol.ExitDenied || w.calls.Load() < 7 {
				t.Errorf("%+v after %d calls, want the denial of the third round", result, w.calls.Load())
			}
		})
	}
}

func TestPausesGrowUpToAMaximum(t *testing.T) {
	var pauses []time.Duration
	w := newFixture(t, respond(protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Granted))
	w.Sleep = func(_ context.Context, d time.Duration) { pauses = append(pauses, d) }
	w.Run(t.Context())
	if len(pauses) != 11 || pauses[0] > minPause || pauses[10] < maxPause/2 || pauses[10] > maxPause {
		t.Errorf("pauses %v", pauses)
	}
}

func TestTheClientEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newFixture(t, respond(protocol.Failed))
	w.Sleep = func(context.Context, time.Duration) { cancel() }
	if result := w.Run(ctx); result.Code == protocol.ExitGranted {
		t.Errorf("%+v", result)
	}
}

func TestTheInitContainerSendsItsTokenOnlyToAServerThatItTrusts(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, `{"state":"Granted"}`)
	}))
	defer s.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for _, tc := range []struct {
		ca   string
		code int
		want int64
	}{{"", protocol.ExitUndecided, 0}, {ca, protocol.ExitGranted, 1}} {
		config, err := ReadConfig(func(key string) string {
			return map[string]string{protocol.EnvServer: s.URL, protocol.EnvSets: "web", protocol.EnvTokenFile: token, protocol.EnvDeadline: "10s", protocol.EnvCA: tc.ca}[key]
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c := New(config, io.Discard)
		c.Sleep = func(context.Context, time.Duration) { cancel() }
		if result := c.Run(ctx); result.Code != tc.code || requests.Load() != tc.want {
			t.Errorf("%+v after %d requests, want %d", result, requests.Load(), tc.want)
		}
		cancel()
	}
}

func TestReadConfigNamesInvalidVariables(t *testing.T) {
	good := map[string]string{protocol.EnvServer: "http://init-action-server", protocol.EnvSets: "a, b", protocol.EnvTokenFile: "/token"}
	for name, tc := range map[string]struct {
		key, value string
		invalid    bool
	}{
		"deadline":                       {protocol.EnvDeadline, "30s", false},
		"no server URL":                  {protocol.EnvServer, "", true},
		"invalid server URL":             {protocol.EnvServer, "init-action-server", true},
		"no permission set":              {protocol.EnvSets, " , ", true},
		"no token file":                  {protocol.EnvTokenFile, "", true},
		"deadline without unit":          {protocol.EnvDeadline, "600", true},
		"negative deadline":              {protocol.EnvDeadline, "-1s", true},
		"certificates without PEM":       {protocol.EnvCA, "none", true},
		"server URL with another scheme": {protocol.EnvServer, "ftp://server", true},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := ReadConfig(func(key string) string {
				if key == tc.key {
					return tc.value
				}
				return good[key]
			})
			if tc.invalid {
				if err == nil || !strings.Contains(err.Error(), tc.key) {
					t.Errorf("%v does not name %s", err, tc.key)
				}
				return
			}
			if err != nil || config.URL != "http://init-action-server/v1/authorize" || fmt.Sprint(config.Sets) != "[a b]" {
				t.Errorf("%+v %v", config, err)
			}
		})
	}
}
