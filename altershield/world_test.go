package altershield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	double "github.com/breakwater-dev/breakwater/test/altershield"
)

const testToken = "altershield-operator"

// world is a server, a client, and what the server called back.
type world struct {
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

// newWorld connects a client and a double over loopback. Signatures are
// enforced. change may adapt what the client is made from.
func newWorld(t *testing.T, change func(*Config), options ...Option) *world {
	t.Helper()
	w := &world{}
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

func (w *world) script(t *testing.T, script string) {
	t.Helper()
	s, err := double.ParseScript([]byte(script))
	if err == nil {
		err = w.double.SetScript(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// callbacks returns all that came, in the order of their coming, once nothing
// is under way any more.
func (w *world) callbacks(t *testing.T) []Callback {
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
func (w *world) open(t *testing.T) {
	t.Helper()
	if _, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o"}); err != nil {
		t.Fatal(err)
	}
}

// startBatch starts a batch of order o.
func (w *world) startBatch(t *testing.T) StartAnswer {
	t.Helper()
	answer, err := w.client.StartBatch(t.Context(), StartBatch{OrderID: "o", Info: BatchInfo{Pods: []string{"p"}}})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
