package property

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const (
	token    = "secret"
	platform = "breakwater"
)

// fakeServer is the double of the server without a network.
type fakeServer struct {
	*double.Double
	fixture *fixture
	// down: the server is unreachable and a proxy answers 404. Its state stays.
	down bool

	mu        sync.Mutex
	callbacks []callbackRequest // sent but not delivered
}

// callbackRequest is a callback that was not delivered yet.
type callbackRequest struct {
	header http.Header
	body   []byte
}

func newFakeServer(w *fixture) *fakeServer {
	j := &fakeServer{fixture: w}
	j.Double = double.NewDouble(double.Options{
		CallbackURL: "http://callback", Tokens: map[string]string{platform: token}, Clock: w.clock,
		HTTP: &http.Client{Transport: callbackTransport{j}},
	})
	return j
}

// callbackTransport stores the callbacks of the server.
type callbackTransport struct{ *fakeServer }

func (m callbackTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callbacks = append(m.callbacks, callbackRequest{r.Header.Clone(), body})
	return answer(http.StatusOK, nil), nil
}

func answer(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

var errLost = errors.New("the connection broke")

// RoundTrip is a call of function submit or verdict.
func (j *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w, action := j.fixture, path.Base(r.URL.Path)
	if j.down {
		return answer(http.StatusNotFound, []byte("{}")), nil
	}
	fate := w.draw("call", 10)
	if fate == 9 {
		return nil, errLost // before the call arrived
	}
	w.checkCall(action, body)
	w.scriptChecks(action)
	recorded := httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(body))
	j.Handler().ServeHTTP(recorded, r)
	if err := j.Idle(r.Context()); err != nil {
		return nil, err
	}
	w.maybeCrash("server/" + action)
	w.interleave() // a callback can overtake the answer
	if fate == 8 {
		return nil, errLost // after the call was executed
	}
	return answer(recorded.Code, recorded.Body.Bytes()), nil
}

// scriptChecks draws the result of a check that the call may start.
func (w *fixture) scriptChecks(action string) {
	if !strings.Contains(action, "Notify") {
		return
	}
	var b double.Behaviour
	switch w.draw("judgement", 24) {
	case 23, 14:
		b.Verdict = "fail"
	case 22, 21:
		b.Forgotten = true
	case 20:
		b.Premature, b.Verdict = true, "fail"
	case 19:
		b.Premature = true
	case 13:
		b.Verdict, b.As = "fail", "binary"
	case 12:
		b.Lost, b.Verdict = true, "fail"
	case 11:
		b.Lost = true
	case 10:
		b.Verdict = "inconc"
	case 9:
		b.Ending = double.TimedOut
	case 8:
		b.Never = true
	case 7:
		b.NoRules = true
	case 6:
		b.SkipCheck = true
	case 5:
		b.As = "structured"
	}
	if err := w.server.SetScript(double.Script{Default: b}); err != nil {
		panic(err)
	}
}

// pendingCallbacks returns the number of callbacks that are not delivered yet.
func (j *fakeServer) pendingCallbacks() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.callbacks)
}

func (j *fakeServer) takeCallback(at int, keep bool) callbackRequest {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.callbacks[at]
	if !keep {
		j.callbacks = append(j.callbacks[:at:at], j.callbacks[at+1:]...)
	}
	return p
}

// deliverCallback posts a callback and records its verdicts if it is answered with 200.
func (w *fixture) deliverCallback(p callbackRequest) {
	// A callback process that crashes has not answered.
	_ = w.activate("callback", func() error {
		r := httptest.NewRequest(http.MethodPost, "/openapi/altershield/callback", bytes.NewReader(p.body)).WithContext(quietContext())
		r.Header = p.header.Clone()
		recorded := httptest.NewRecorder()
		known := w.nodes()
		w.callback.ServeHTTP(recorded, r)
		if recorded.Code == http.StatusOK {
			w.recordPromise(p, known)
		}
		return nil
	})
}
