package client

import (
	"context"
	"encoding/json"
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

// world is a server that answers by a script, and the client's clock.
type world struct {
	*Client
	calls  atomic.Int64
	tokens chan string
	paused time.Duration
}

func newWorld(t *testing.T, script func(call int64, w http.ResponseWriter)) *world {
	t.Helper()
	w := &world{tokens: make(chan string, 100)}
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
		w.paused += d
		// The kubelet replaces the token meanwhile.
		if err := os.WriteFile(file, []byte("later"), 0o600); err != nil {
			t.Error(err)
		}
	}
	return w
}

func answers(states ...protocol.State) func(int64, http.ResponseWriter) {
	return func(call int64, w http.ResponseWriter) {
		state := states[min(int(call), len(states))-1]
		_, _ = fmt.Fprintf(w, "\n\n{\"state\":%q,\"message\":\"call %d\"}\n", state, call)
	}
}

func TestARoundEndsWithWhatTheServerDecided(t *testing.T) {
	refuses := func(call int64, w http.ResponseWriter) {
		if call == 1 {
			w.WriteHeader(http.StatusForbidden)
			// A body that claims otherwise changes nothing.
			_, _ = io.WriteString(w, `{"state":"Granted"}`)
			return
		}
		answers(protocol.Granted)(call, w)
	}
	for name, tc := range map[string]struct {
		script func(int64, http.ResponseWriter)
		code   int
		calls  int64
	}{
		"granted at once":                 {answers(protocol.Granted), protocol.ExitGranted, 1},
		"denied at once":                  {answers(protocol.Denied), protocol.ExitDenied, 1},
		"failed, and tried again":         {answers(protocol.Failed, protocol.Failed, protocol.Granted), protocol.ExitGranted, 3},
		"sent away by a server that ends": {answers(protocol.Waiting, protocol.Granted), protocol.ExitGranted, 2},
		"refused, and tried again":        {refuses, protocol.ExitGranted, 2},
		"broken off":                      {breaksOff, protocol.ExitGranted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.script)
			result := w.Run(t.Context())
			if result.Code != tc.code || w.calls.Load() != tc.calls {
				t.Errorf("%+v after %d calls, want %d after %d", result, w.calls.Load(), tc.code, tc.calls)
			}
		})
	}
}

func breaksOff(call int64, w http.ResponseWriter) {
	if call > 1 {
		answers(protocol.Granted)(call, w)
		return
	}
	_, _ = io.WriteString(w, "\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestTheTokenIsReadAnewAtEachTry(t *testing.T) {
	w := newWorld(t, answers(protocol.Failed, protocol.Granted))
	w.Run(t.Context())
	if a, b := <-w.tokens, <-w.tokens; a != "Bearer first" || b != "Bearer later" {
		t.Errorf("sent %q, then %q", a, b)
	}
}

func TestItEndsUndecidedOnlyAfterTheRoundAndNeverWithRestartPolicyNever(t *testing.T) {
	for name, tc := range map[string]struct {
		never bool
		code  int
	}{
		"a round that is over is a restart":                   {false, protocol.ExitDeadline},
		"with Never the next round follows inside the client": {true, protocol.ExitDenied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(call int64, rw http.ResponseWriter) {
				if call <= 3 {
					answers(protocol.Failed)(call, rw)
					return
				}
				answers(protocol.Denied)(call, rw)
			})
			w.RestartNever, w.Deadline = tc.never, 200*time.Millisecond
			tries := 0
			w.Sleep = func(ctx context.Context, _ time.Duration) {
				if tries++; tries == 3 {
					<-ctx.Done() // the rest of the round passes
				}
			}
			if result := w.Run(t.Context()); result.Code != tc.code {
				t.Errorf("%+v, want %d", result, tc.code)
			}
		})
	}
}

func TestThePausesGrowAndAreBounded(t *testing.T) {
	var pauses []time.Duration
	w := newWorld(t, answers(protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Failed, protocol.Granted))
	w.Sleep = func(_ context.Context, d time.Duration) { pauses = append(pauses, d) }
	w.Run(t.Context())
	if len(pauses) != 11 || pauses[0] > minPause || pauses[10] < maxPause/2 || pauses[10] > maxPause {
		t.Errorf("pauses %v", pauses)
	}
}

func TestAPodThatEndsEndsTheClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, answers(protocol.Failed))
	w.RestartNever = true
	w.Sleep = func(context.Context, time.Duration) { cancel() }
	if result := w.Run(ctx); result.Code == protocol.ExitGranted {
		t.Errorf("%+v", result)
	}
}

func TestTheEnvironmentIsReadAndMistakesName(t *testing.T) {
	good := map[string]string{protocol.EnvServer: "http://init-action-server", protocol.EnvSets: "a, b", protocol.EnvTokenFile: "/token"}
	for name, tc := range map[string]struct {
		key, value string
		wrong      bool
	}{
		"as the webhook writes it":     {protocol.EnvRestartPolicy, "Never", false},
		"another deadline":             {protocol.EnvDeadline, "30s", false},
		"no server":                    {protocol.EnvServer, "", true},
		"a server that is no URL":      {protocol.EnvServer, "init-action-server", true},
		"no set":                       {protocol.EnvSets, " , ", true},
		"no token":                     {protocol.EnvTokenFile, "", true},
		"a deadline without a unit":    {protocol.EnvDeadline, "600", true},
		"a deadline that is over":      {protocol.EnvDeadline, "-1s", true},
		"a server by another protocol": {protocol.EnvServer, "ftp://server", true},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := ReadConfig(func(key string) string {
				if key == tc.key {
					return tc.value
				}
				return good[key]
			})
			if tc.wrong {
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
