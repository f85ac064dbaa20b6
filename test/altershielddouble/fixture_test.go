package altershielddouble

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// fixture is a double with a real HTTP server and a receiver of its callbacks.
type fixture struct {
	*Double
	url   string
	token string
	clock *clocktesting.FakeClock

	mu       sync.Mutex
	received []received
	// arrived receives a value for each callback.
	arrived chan struct{}
}

type received struct {
	header http.Header
	body   []byte
}

func newFixture(t *testing.T, change func(*Options)) *fixture {
	t.Helper()
	f := &fixture{token: "token", clock: clocktesting.NewFakeClock(time.UnixMilli(1700000000000)), arrived: make(chan struct{}, 100)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.received = append(f.received, received{r.Header, body})
		f.mu.Unlock()
		f.arrived <- struct{}{}
	}))
	t.Cleanup(receiver.Close)
	options := Options{CallbackURL: receiver.URL, Tokens: map[string]string{"breakwater": f.token}, Clock: f.clock}
	if change != nil {
		change(&options)
	}
	f.Double = NewDouble(options)
	server := httptest.NewServer(f.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(f.Close)
	f.url = server.URL
	return f
}

func (f *fixture) setScript(t *testing.T, script string) {
	t.Helper()
	if err := f.LoadScript([]byte(script)); err != nil {
		t.Fatal(err)
	}
}

// answer is the response to a call; status 0 is a closed connection.
type answer struct {
	status int
	raw    string
	result struct {
		Success    *bool
		ResultCode *string
		Msg        *string
		Domain     map[string]any
	}
}

func (a answer) code() string {
	if a.result.ResultCode == nil {
		return ""
	}
	return *a.result.ResultCode
}

func (a answer) node() string {
	id, _ := a.result.Domain["nodeId"].(string)
	return id
}

func (f *fixture) call(t *testing.T, action string, body []byte) answer {
	t.Helper()
	return f.callAs(t, action, body, "breakwater", f.token, "1")
}

func (f *fixture) callAs(t *testing.T, action string, body []byte, platform, token, timestamp string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+exePath+action, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-AlterShield-Platform", platform)
	request.Header.Set("X-AlterShield-Timestamp", timestamp)
	request.Header.Set("X-AlterShield-Sign", sign(timestamp, string(body), token))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := answer{status: response.StatusCode, raw: string(raw)}
	_ = json.Unmarshal(raw, &out.result) // for HTML only raw is set
	return out
}

// started opens order "o" and starts a batch.
func (f *fixture) started(t *testing.T) string {
	t.Helper()
	f.call(t, actionOpenOrder, orderBody(nil))
	a := f.call(t, actionStartBatch, batch(nil))
	if a.node() == "" {
		t.Fatal(a.raw)
	}
	return a.node()
}

func (f *fixture) idle(t *testing.T) {
	t.Helper()
	if err := f.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) bodies(t *testing.T) []callbackBody {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []callbackBody
	for _, r := range f.received {
		var body callbackBody
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

func (f *fixture) state(node string) State {
	for _, n := range f.Nodes() {
		if n.ID == node {
			return n.State
		}
	}
	return ""
}

// step waits until a timer is set and then advances the clock.
func (f *fixture) step(t *testing.T, d time.Duration) {
	t.Helper()
	ctx := t.Context()
	for !f.clock.HasWaiters() {
		select {
		case <-ctx.Done():
			t.Fatal("no timer was set")
		case <-time.After(time.Millisecond):
		}
	}
	f.clock.Step(d)
}

func (f *fixture) await(t *testing.T) {
	t.Helper()
	select {
	case <-f.arrived:
	case <-time.After(10 * time.Second):
		t.Fatal("no callback arrived")
	}
}
