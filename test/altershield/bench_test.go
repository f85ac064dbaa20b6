package altershield

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

// bench is a double with a real HTTP server and a receiver of its callbacks.
type bench struct {
	*Double
	url   string
	token string
	clock *clocktesting.FakeClock

	mu       sync.Mutex
	received []received
	came     chan struct{}
}

type received struct {
	header http.Header
	body   []byte
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	b := &bench{token: "token", clock: clocktesting.NewFakeClock(time.UnixMilli(1700000000000)), came: make(chan struct{}, 100)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.received = append(b.received, received{r.Header, body})
		b.mu.Unlock()
		b.came <- struct{}{}
	}))
	t.Cleanup(receiver.Close)
	options := Options{CallbackURL: receiver.URL, Tokens: map[string]string{"breakwater": b.token}, Clock: b.clock}
	if change != nil {
		change(&options)
	}
	b.Double = NewDouble(options)
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(b.Close)
	b.url = server.URL
	return b
}

func (b *bench) put(t *testing.T, script string) {
	t.Helper()
	s, err := ParseScript([]byte(script))
	if err == nil {
		err = b.SetScript(s)
	}
	if err != nil {
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

func (b *bench) call(t *testing.T, action string, body []byte) answer {
	t.Helper()
	return b.callAs(t, action, body, "breakwater", b.token, "1")
}

func (b *bench) callAs(t *testing.T, action string, body []byte, platform, token, timestamp string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+exePath+action, bytes.NewReader(body))
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
func (b *bench) started(t *testing.T) string {
	t.Helper()
	b.call(t, actionOpenOrder, orderBody(nil))
	a := b.call(t, actionStartBatch, batch(nil))
	if a.node() == "" {
		t.Fatal(a.raw)
	}
	return a.node()
}

func (b *bench) idle(t *testing.T) {
	t.Helper()
	if err := b.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) bodies(t *testing.T) []callbackBody {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []callbackBody
	for _, r := range b.received {
		var body callbackBody
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

func (b *bench) state(node string) State {
	for _, n := range b.Nodes() {
		if n.ID == node {
			return n.State
		}
	}
	return ""
}

// step waits until a timer is set and then advances the clock.
func (b *bench) step(t *testing.T, d time.Duration) {
	t.Helper()
	ctx := t.Context()
	for !b.clock.HasWaiters() {
		select {
		case <-ctx.Done():
			t.Fatal("no timer was set")
		case <-time.After(time.Millisecond):
		}
	}
	b.clock.Step(d)
}

func (b *bench) await(t *testing.T) {
	t.Helper()
	select {
	case <-b.came:
	case <-time.After(10 * time.Second):
		t.Fatal("no callback arrived")
	}
}
