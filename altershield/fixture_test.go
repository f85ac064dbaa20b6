package altershield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const testToken = "altershield-operator"

// fixture is a server double, a client of it, and the callbacks of the server.
type fixture struct {
	double *double.Double
	client *Client
	config Config

	mu     sync.Mutex
	posted []posted
}

type posted struct {
	header http.Header
	body   []byte
}

// newFixture connects a client and a double over loopback. Signatures are
// enforced. change edits the configuration of the client.
func newFixture(t *testing.T, change func(*Config), options ...Option) *fixture {
	t.Helper()
	w := &fixture{}
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.posted = append(w.posted, posted{r.Header, body})
		_, _ = rw.Write([]byte(`{"success":true}`))
	}))
	t.Cleanup(receiver.Close)
	w.double = double.NewDouble(double.Options{
		CallbackURL: receiver.URL, Tokens: map[string]string{"breakwater": testToken}, HeaderPrefix: "X-OpsCloud-", Scene: "scene", Generation1Scene: "release",
	})
	server := httptest.NewServer(w.double.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(w.double.Close)
	w.config = Config{
		BaseURL: server.URL, HeaderPrefix: "X-OpsCloud-", Platform: "breakwater", Token: testToken, TenantCode: "tenant",
		ChangeSceneKey: "scene", ReleaseCheckSceneKey: "release", ClusterName: "one", QPS: 1000, Burst: 1000,
	}
	if change != nil {
		change(&w.config)
	}
	w.client = New(w.config, append([]Option{WithPause(time.Millisecond)}, options...)...)
	t.Cleanup(w.client.Close)
	return w
}

func (w *fixture) script(t *testing.T, script string) {
	t.Helper()
	if err := w.double.LoadScript([]byte(script)); err != nil {
		t.Fatal(err)
	}
}

// callbacks waits until the server has no check in progress, and returns all
// callbacks in the order of their arrival.
func (w *fixture) callbacks(t *testing.T) []Callback {
	t.Helper()
	if err := w.double.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Callback
	for _, p := range w.posted {
		if err := Verify(p.header, w.config.HeaderPrefix, w.config.Platform, p.body, testToken, time.Now(), 0); err != nil {
			t.Fatal(err)
		}
		c, err := ParseCallback(p.body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// open opens order o.
func (w *fixture) open(t *testing.T) {
	t.Helper()
	if _, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o"}); err != nil {
		t.Fatal(err)
	}
}

// startBatch starts a batch of order o.
func (w *fixture) startBatch(t *testing.T) StartAnswer {
	t.Helper()
	answer, err := w.client.StartBatch(t.Context(), StartBatch{OrderID: "o", Info: BatchInfo{Pods: []string{"p"}}})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
