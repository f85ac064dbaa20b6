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

	double "github.com/breakwater-dev/breakwater/test/altershield"
)

const (
	token    = "secret"
	platform = "breakwater"
)

// judge is the double of the server, without a network.
type judge struct {
	*double.Double
	world *world
	// down: a proxy answers 404 for it. Whatever it has done stays.
	down bool

	mu   sync.Mutex
	mail []posted // what it calls back
}

// posted is a callback on its way.
type posted struct {
	header http.Header
	body   []byte
}

func newJudge(w *world) *judge {
	j := &judge{world: w}
	j.Double = double.NewDouble(double.Options{
		CallbackURL: "http://callback", Tokens: map[string]string{platform: token}, Clock: w.clock,
		HTTP: &http.Client{Transport: mailbox{j}},
	})
	return j
}

// mailbox keeps what the judge calls back.
type mailbox struct{ *judge }

func (m mailbox) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail = append(m.mail, posted{r.Header.Clone(), body})
	return answer(http.StatusOK, nil), nil
}

func answer(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

var errLost = errors.New("the connection broke")

// RoundTrip is a call of function submit or verdict.
func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w, action := j.world, path.Base(r.URL.Path)
	if j.down {
		return answer(http.StatusNotFound, []byte("{}")), nil
	}
	fate := w.draw("call", 10)
	if fate == 9 {
		return nil, errLost // before it arrived
	}
	w.called(action, body)
	w.judging(action)
	recorded := httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(body))
	j.Handler().ServeHTTP(recorded, r)
	if err := j.Idle(r.Context()); err != nil {
		return nil, err
	}
	w.mayDie("server/" + action)
	w.interleave() // a callback can overtake the answer
	if fate == 8 {
		return nil, errLost // after it was done
	}
	return answer(recorded.Code, recorded.Body.Bytes()), nil
}

// judging scripts what becomes of a check that the call may begin.
func (w *world) judging(action string) {
	if !strings.HasSuffix(action, "Notify") {
		return
	}
	var b double.Behaviour
	switch w.draw("judgement", 24) {
	case 23, 14:
		b.Verdict = "fail"
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
	if err := w.judge.SetScript(double.Script{Default: b}); err != nil {
		panic(err)
	}
}

// letters returns how many callbacks are on their way.
func (j *judge) letters() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.mail)
}

func (j *judge) take(at int, keep bool) posted {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.mail[at]
	if !keep {
		j.mail = append(j.mail[:at:at], j.mail[at+1:]...)
	}
	return p
}

// deliverCallback posts a callback, and notes what was promised by the answer.
func (w *world) deliverCallback(p posted) {
	// One that dies has promised nothing.
	_ = w.activate("callback", func() error {
		r := httptest.NewRequest(http.MethodPost, "/openapi/altershield/callback", bytes.NewReader(p.body)).WithContext(quietContext())
		r.Header = p.header.Clone()
		recorded := httptest.NewRecorder()
		known := w.nodes()
		w.callback.ServeHTTP(recorded, r)
		if recorded.Code == http.StatusOK {
			w.promised(p, known)
		}
		return nil
	})
}
