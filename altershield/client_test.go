package altershield

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestABatchIsJudgedFromOrderToVerdict(t *testing.T) {
	ctx, w := t.Context(), newFixture(t, nil)
	w.script(t, `{"checks":[{"match":{"stage":"POST"},"then":{"verdict":"fail","rules":[{"name":"error rate","verdict":"FAIL","msg":"high"}]}}]}`)
	order, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: "o", Title: "release", Apps: []string{"sleep"}})
	if err != nil || order.OrderID == "" || order.Existed {
		t.Fatalf("%+v, %v", order, err)
	}
	started := w.startBatch(t)
	pre := w.callbacks(t)
	if len(pre) != 1 || pre[0].NodeID != started.NodeID || pre[0].Stage != v1alpha1.StagePre || pre[0].Verdict != "pass" || pre[0].Unconfirmed {
		t.Fatalf("PRE: %+v", pre)
	}
	if _, err := w.client.Finish(ctx, Finish{OrderID: "o", NodeID: started.NodeID}); err != nil {
		t.Fatal(err)
	}
	post := w.callbacks(t)[1]
	want := Callback{
		BizExecOrderID: "o", NodeID: started.NodeID, Stage: v1alpha1.StagePost, CheckType: CheckBatch, Verdict: "fail",
		Rules: []Rule{{Name: "error rate", Verdict: "FAIL", Msg: "high"}}, Message: "error rate: high",
	}
	if diff := cmp.Diff(want, post); diff != "" {
		t.Errorf("POST: -want +got: %s", diff)
	}
	for stage, pass := range map[v1alpha1.Stage]bool{v1alpha1.StagePre: true, v1alpha1.StagePost: false} {
		got, err := w.client.Retrieve(ctx, Retrieve{OrderID: "o", NodeID: started.NodeID, Stage: stage})
		if err != nil || got.Passed() != pass {
			t.Errorf("retrieve %s: %+v, %v", stage, got, err)
		}
	}
	if err := w.client.CloseOrder(ctx, CloseOrder{OrderID: "o", State: CloseRollback, Message: "rolled back"}); err != nil {
		t.Error(err)
	}
	if got := w.double.Orders()[0].State; got != "ROLLBACK" {
		t.Errorf("the order is %s", got)
	}
}

func TestAnOrderThatExistsIsASuccess(t *testing.T) {
	w := newFixture(t, nil)
	w.open(t)
	got, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "o"})
	if diff := cmp.Diff(OrderAnswer{Existed: true}, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestTheStartOfAnOrderIsCalledBackAsAnOrderCheck(t *testing.T) {
	w := newFixture(t, nil)
	w.open(t)
	started, err := w.client.StartOrder(t.Context(), StartOrder{OrderID: "o", Emergency: true})
	if err != nil {
		t.Fatal(err)
	}
	got := w.callbacks(t)
	if len(got) != 1 || got[0].CheckType != CheckOrder || got[0].NodeID != started.NodeID || !got[0].Emergency {
		t.Errorf("%+v", got)
	}
}

func TestAnEventIsRecordedOnceAndDoesNotAffectTheRelease(t *testing.T) {
	w := newFixture(t, nil)
	id := EventOrderID("o", "started")
	first, err := w.client.SubmitEvent(t.Context(), SubmitEvent{OrderID: id, Title: "started"})
	if err != nil || first.OrderID == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if second, err := w.client.SubmitEvent(t.Context(), SubmitEvent{OrderID: id}); err != nil || second != (EventAnswer{}) {
		t.Errorf("%+v, %v", second, err)
	}
	w.open(t)
	if got := w.double.Orders(); len(got) != 2 || got[1].State != "SUCCESS" {
		t.Errorf("%+v", got)
	}
}

func TestEventIDsAreBounded(t *testing.T) {
	long := strings.Repeat("变", 42)
	a, b := EventOrderID(long, "a-very-long-event"), EventOrderID(long, "another-long-event")
	if a == b || len(a) > maxOrderID || len(b) > maxOrderID {
		t.Errorf("%q, %q", a, b)
	}
	if got := EventOrderID("o", "e"); got != "o#e" {
		t.Error(got)
	}
}

func TestErrorsOfTheServerHaveItsResultCode(t *testing.T) {
	ctx := t.Context()
	for name, tc := range map[string]struct {
		change func(*Config)
		call   func(*fixture) error
		is     func(error) bool
	}{
		"a batch of an unknown order": {nil, func(w *fixture) error {
			_, err := w.client.StartBatch(ctx, StartBatch{OrderID: "none"})
			return err
		}, IsArgument},
		"an order id over 128 bytes": {nil, func(w *fixture) error {
			_, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: strings.Repeat("o", 129)})
			return err
		}, IsArgument},
		"another token": {func(c *Config) { c.Token = "other" }, func(w *fixture) error {
			_, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: "o"})
			return err
		}, IsSignature},
		"another header prefix": {func(c *Config) { c.HeaderPrefix = "X-AlterShield-" }, func(w *fixture) error {
			_, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: "o"})
			return err
		}, IsSignature},
		"an unknown node": {nil, func(w *fixture) error {
			_, err := w.client.Finish(ctx, Finish{OrderID: "o", NodeID: "none"})
			return err
		}, IsState},
		"a creator longer than its column": {
			func(c *Config) { c.Creator = strings.Repeat("c", 57) },
			func(w *fixture) error {
				_, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: "o"})
				return err
			}, IsInternal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.call(newFixture(t, tc.change, onlyOnce())); !tc.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFinishBeforeThePreVerdictIsRejected(t *testing.T) {
	w := newFixture(t, nil)
	w.script(t, `{"default":{"never":true}}`)
	w.open(t)
	started := w.startBatch(t)
	_, err := w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: started.NodeID})
	var result *ResultError
	if !errors.As(err, &result) || !IsState(err) || !strings.Contains(result.Msg, "402:unsupported operation in PRE_AOP") {
		t.Errorf("got %v", err)
	}
}

func TestAResubmitDistinguishesACheckThatNeverBegan(t *testing.T) {
	for behaviour, want := range map[string]struct{ rejected, notBegun bool }{
		`{"forgotten":true}`: {true, true}, `{"never":true}`: {true, false}, `{"lost":true}`: {false, false},
	} {
		w := newFixture(t, nil)
		w.script(t, `{"default":`+behaviour+`}`)
		w.open(t)
		node := w.startBatch(t).NodeID
		if err := w.double.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := w.client.Resubmit(t.Context(), Resubmit{OrderID: "o", NodeID: node})
		if (err != nil) != want.rejected || IsState(err) != want.rejected || IsNotBegun(err) != want.notBegun {
			t.Errorf("%s: got %v", behaviour, err)
		}
	}
}

func TestASecondFinishIsAcceptedAndStartsNoCheck(t *testing.T) {
	w := newFixture(t, nil)
	w.open(t)
	node := w.startBatch(t).NodeID
	w.callbacks(t)
	for range 2 {
		if _, err := w.client.Finish(t.Context(), Finish{OrderID: "o", NodeID: node}); err != nil {
			t.Fatal(err)
		}
		if got := len(w.callbacks(t)); got != 2 {
			t.Errorf("%d callbacks, want PRE and one POST", got)
		}
	}
	if got, err := w.client.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: node, Stage: v1alpha1.StagePost}); err != nil || !got.Passed() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnUnconfirmedPassIsRetrievedAsAFail(t *testing.T) {
	for name, behaviour := range map[string]string{
		"while the check runs": `{"never":true}`,
		"after a timeout":      `{"ending":"timeout"}`,
		"after an exception":   `{"ending":"exception"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.script(t, `{"default":`+behaviour+`}`)
			w.open(t)
			node := w.startBatch(t).NodeID
			for _, c := range w.callbacks(t) {
				if !c.Unconfirmed {
					t.Errorf("%+v", c)
				}
			}
			got, err := w.client.Retrieve(t.Context(), Retrieve{OrderID: "o", NodeID: node, Stage: v1alpha1.StagePre})
			if err != nil || got.Verdict != "fail" || got.Passed() {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestARetrievedVerdictIsAStringOrAnObject(t *testing.T) {
	for domain, want := range map[string]RetrieveAnswer{
		`{"finished":true,"verdict":"pass","url":"u"}`:                    {Complete: true, Verdict: "pass", URL: "u"},
		`{"finished":true,"verdict":{"verdict":"PASS","checkPass":true}}`: {Complete: true, Verdict: "PASS"},
		`{"finished":false,"verdict":null,"url":null}`:                    {},
		`{"finished":true,"verdict":{"verdict":null}}`:                    {Complete: true},
		`null`: {},
	} {
		var got progressDomain
		if err := json.Unmarshal([]byte(domain), &got); err != nil {
			t.Errorf("%s: %v", domain, err)
		}
		if diff := cmp.Diff(want, RetrieveAnswer{Complete: got.Complete, Verdict: string(got.Verdict), URL: got.URL}); diff != "" {
			t.Errorf("%s: %s", domain, diff)
		}
	}
}

// onlyOnce makes a call end after one attempt: the pause exceeds any deadline.
func onlyOnce() Option { return WithPause(time.Hour) }

func TestACallEndsAtItsTotalDeadlineWithTheLastError(t *testing.T) {
	for name, tc := range map[string]struct {
		pause    time.Duration
		deadline time.Duration
		least    int
	}{
		"no pause beyond the deadline":   {time.Hour, time.Minute, 1},
		"the deadline ends the attempts": {time.Millisecond, 300 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			unreachable := roundTrip(func(*http.Request) (*http.Response, error) {
				attempts++
				return &http.Response{StatusCode: http.StatusBadGateway, Body: io.NopCloser(strings.NewReader("bad gateway"))}, nil
			})
			c := New(Config{BaseURL: "http://x", TotalDeadline: tc.deadline, QPS: 1000}, WithPause(tc.pause), WithTransport(unreachable))
			_, err := c.OpenOrder(t.Context(), OpenOrder{OrderID: "o"})
			var callErr *CallError
			if !errors.As(err, &callErr) || callErr.Status != http.StatusBadGateway || attempts < tc.least {
				t.Errorf("%d attempts: %v", attempts, err)
			}
		})
	}
}

func TestACallBeyondTheRateLimitIsThrottled(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.QPS, c.Burst = 0.01, 1 })
	w.open(t)
	_, err := w.client.OpenOrder(t.Context(), OpenOrder{OrderID: "p"})
	var callErr *CallError
	if !errors.As(err, &callErr) || callErr.Kind != KindThrottled || MayHaveTakenEffect(err) {
		t.Errorf("got %v", err)
	}
}

func TestACallWithACanceledContextIsNotSent(t *testing.T) {
	w := newFixture(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.client.OpenOrder(ctx, OpenOrder{OrderID: "o"})
	var callErr *CallError
	if !errors.As(err, &callErr) || callErr.Kind != KindCanceled || MayHaveTakenEffect(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheTimestampIsReadFromTheInjectedClock(t *testing.T) {
	at := time.UnixMilli(1700000000000)
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = rw.Write([]byte(`{"success":true,"resultCode":null,"msg":null,"domain":null}`))
	}))
	defer server.Close()
	c := New(Config{BaseURL: server.URL + "/", Platform: "breakwater"}, WithClock(clocktesting.NewFakePassiveClock(at)))
	if err := c.CloseOrder(t.Context(), CloseOrder{OrderID: "o", State: CloseSuccess}); err != nil {
		t.Fatal(err)
	}
	if got.Get("X-AlterShield-Timestamp") != "1700000000000" || got.Get("X-AlterShield-Platform") != "breakwater" {
		t.Errorf("%v", got)
	}
}

func TestOneConfigHasOneClient(t *testing.T) {
	var clients CurrentClient
	a := Config{BaseURL: "http://a", Token: "one"}
	first := clients.For(a)
	if clients.For(a) != first {
		t.Error("another client for the same config")
	}
	b := a
	b.Token = "two"
	if clients.For(b) == first {
		t.Error("the same client for another token")
	}
}

func TestAfterADialErrorTheRequestWasNotSent(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	c := New(Config{BaseURL: "http://" + address}, onlyOnce())
	_, err = c.StartBatch(t.Context(), StartBatch{OrderID: "o"})
	var callErr *CallError
	if !errors.As(err, &callErr) || callErr.Kind != KindDial || MayHaveTakenEffect(err) {
		t.Errorf("got %v", err)
	}
}
