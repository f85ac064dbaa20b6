package altershield

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAHarmlessCallIsRetriedAfterAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		fault string
		calls int
	}{
		"901":                    {`"fault":"901","times":2`, 3},
		"500":                    {`"fault":"500","times":2`, 3},
		"502 with HTML":          {`"fault":"502","times":2`, 3},
		"200 with HTML":          {`"fault":"garbage","times":2`, 3},
		"reset before commit":    {`"fault":"reset","times":2`, 3},
		"slow within an attempt": {`"fault":"slow","delay":"1ms","times":1`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.script(t, `{"faults":[{`+tc.fault+`}]}`)
			got, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o"})
			if err != nil || got.OrderID == "" {
				t.Fatalf("%+v, %v", got, err)
			}
			calls := w.double.Log().Calls
			if len(calls) != tc.calls {
				t.Errorf("%d calls, want %d", len(calls), tc.calls)
			}
			for _, call := range calls {
				if diff := cmp.Diff(string(calls[0].Body), string(call.Body)); diff != "" || len(call.Body) == 0 {
					t.Errorf("an attempt has another body: %q, %s", call.Body, diff)
				}
			}
		})
	}
}

func TestAHarmlessCallIsRetriedAfterASlowAttempt(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.AttemptTimeout = 300 * time.Millisecond })
	w.script(t, `{"faults":[{"fault":"slow","delay":"1h","times":1}]}`)
	w.open(t)
}

func TestAnOrderWhoseAnswerIsLostIsReportedAsExisting(t *testing.T) {
	for _, fault := range []string{"reset", "500", "502", "garbage", "901"} {
		w := newFixture(t, nil)
		w.script(t, `{"faults":[{"fault":"`+fault+`","after":true,"times":1}]}`)
		got, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o"})
		if err != nil || !got.Existed {
			t.Errorf("%s: %+v, %v", fault, got, err)
		}
	}
}

// slowTimeout is the timeout of a call that has no answer. On a busy machine the connection takes a part of it.
const slowTimeout = time.Second

func TestStartsAndFinishesAreSentOnceDespiteFaults(t *testing.T) {
	for _, fault := range []string{
		`"fault":"901"`, `"fault":"500"`, `"fault":"502"`, `"fault":"garbage"`, `"fault":"404"`,
		`"fault":"reset"`, `"fault":"reset","after":true`, `"fault":"slow","delay":"1h"`, `"fault":"slow","delay":"1h","after":true`,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.open(t)
			node := w.startBatch(t).NodeID
			w.callbacks(t)
			before := len(w.double.Log().Calls)
			if strings.Contains(fault, "slow") {
				impatient := w.config
				impatient.AttemptTimeout = slowTimeout
				w.client = New(impatient, WithPause(time.Millisecond))
			}
			w.script(t, `{"faults":[{`+fault+`}]}`)
			for name, call := range map[string]func() error{
				"order": func() error { _, err := w.client.StartOrder(t.Context(), StartOrder{OrderID: "o"}); return err },
				"batch": func() error { _, err := w.client.StartBatch(t.Context(), StartBatch{OrderID: "o"}); return err },
				"finish": func() error {
					_, err := w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: node})
					return err
				},
			} {
				if err := call(); err == nil || !MayHaveTakenEffect(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := len(w.double.Log().Calls) - before; got != 3 && !strings.Contains(fault, "slow") {
				t.Errorf("%d calls", got) // the double logs a slow call at its end
			}
		})
	}
}

func TestAStartIsRetriedUntilItHasAConnection(t *testing.T) {
	var dials atomic.Int32
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) <= 2 {
			return nil, errors.New("connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	w := newFixture(t, nil, WithTransport(transport))
	w.open(t)
	transport.CloseIdleConnections()
	dials.Store(0)
	if got := w.startBatch(t); got.NodeID == "" || dials.Load() != 3 {
		t.Errorf("%+v after %d dials", got, dials.Load())
	}
	if got := len(w.double.Nodes()); got != 1 {
		t.Errorf("%d nodes", got)
	}
}

// roundTrip is a transport that does not report its connections to httptrace.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAStartOverATransportThatTellsNothingIsSentOnce(t *testing.T) {
	sent := 0
	c := New(Config{BaseURL: "http://x"}, WithPause(time.Millisecond), WithTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, io.ErrUnexpectedEOF
	})))
	if _, err := c.StartBatch(t.Context(), StartBatch{OrderID: "o"}); !MayHaveTakenEffect(err) || sent != 1 {
		t.Errorf("sent %d times: %v", sent, err)
	}
}

func TestAnAnswerIsBoundedInSizeAndTime(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   CallErrorKind
	}{
		"more than 1 MiB": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"success":true,"msg":%q}`, strings.Repeat("x", maxAnswer))
		}, KindMalformed},
		"a body that does not end": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"success":`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, KindTimeout},
		"a missing header": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, KindTimeout},
		"a truncated body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"success":`))
		}, KindIO},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, KindStatus},
		"an empty body":            {func(http.ResponseWriter, *http.Request) {}, KindMalformed},
		"JSON without an envelope": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"message":"login"}`)) }, KindMalformed},
		"a domain of another type": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"success":true,"resultCode":"000","domain":[1]}`))
		}, KindMalformed},
		"a start without a node": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"success":true,"resultCode":"000","msg":null,"domain":null}`))
		}, KindMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not detect that the client disconnected
				tc.answer(w, r)
			}))
			defer server.Close()
			config := Config{BaseURL: server.URL}
			if tc.want == KindTimeout {
				config.AttemptTimeout = slowTimeout
			}
			c := New(config)
			defer c.Close()
			_, err := c.StartBatch(t.Context(), StartBatch{OrderID: "o"})
			var callErr *CallError
			if !errors.As(err, &callErr) || callErr.Kind != tc.want || !MayHaveTakenEffect(err) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestAnAnswerHasNothingOfAnEarlierMalformedOne(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		domain := `{}`
		if sent++; sent == 1 {
			domain = `{"finished":true,"verdict":"pass","url":1}`
		}
		_, _ = w.Write([]byte(`{"success":true,"resultCode":"000","domain":` + domain + `}`))
	}))
	defer server.Close()
	c := New(Config{BaseURL: server.URL}, WithPause(time.Millisecond))
	defer c.Close()
	if got, err := c.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: "n"}); err != nil || got != (RetrieveAnswer{}) || sent != 2 {
		t.Errorf("%+v, %v after %d attempts, want an empty answer after 2", got, err, sent)
	}
}

func TestTheServersMessageInAnErrorIsBounded(t *testing.T) {
	err := Decode("a", []byte(`{"success":false,"resultCode":"103","msg":"`+strings.Repeat("变", 1000)+`"}`), nil)
	var result *ResultError
	if !errors.As(err, &result) || len(result.Msg) > maxResultMsg || !strings.HasSuffix(result.Msg, "变") {
		t.Errorf("%v", err)
	}
}
