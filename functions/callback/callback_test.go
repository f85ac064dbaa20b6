package callback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const path = "/openapi/altershield/callback"

// fixture is a callback handler with its cluster and its Broker.
type fixture struct {
	*ft.Cluster
	broker  *eventstest.Recorder
	options callback.Options
	handler http.Handler
}

func newFixture(t *testing.T, c *ft.Cluster) *fixture {
	t.Helper()
	clock := clocktesting.NewFakeClock(ft.Now())
	h := &fixture{Cluster: c, broker: &eventstest.Recorder{}}
	h.options = callback.Options{
		Change: c.Change, Server: ft.NewClients(c, clock), Broker: h.broker, Signer: ft.Keys(), Clock: clock, Meter: noop.Meter{},
	}
	h.setStoreTimeout(t, 10*time.Second)
	return h
}

// shortTimeout is a RequestTimeout for tests in which retries do not help.
const shortTimeout = 100 * time.Millisecond

// setStoreTimeout sets how long reads and writes are retried.
func (h *fixture) setStoreTimeout(t *testing.T, d time.Duration) {
	t.Helper()
	h.options.RequestTimeout = d
	h.handler = callback.New(h.options)
}

// newConfiguredFixture returns a fixture with a token and a server.
func newConfiguredFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	c := ft.New(t, objects...)
	c.Configure("http://server.example.com", ft.Token)
	return newFixture(t, c)
}

// batchCallback returns a fail of a POST check of a batch, as the server sends it.
func batchCallback(node string) string {
	return fmt.Sprintf(`{"callbackRequest":{"bizExecOrderId":%q,"changeSceneKey":"s","defenseStageEnum":"POST","nodeId":%q,`+
		`"verdict":{"allFinish":true,"checkPass":false,"rules":[{"verdict":"FAIL","name":"error rate","msg":"5xx above 1 %%"}],"verdict":"fail"}},`+
		`"changeCheckType":"CHANGE_BATCH"}`, ft.OrderID, node)
}

// post sends a signed body.
func (h *fixture) post(body string, header ...string) *httptest.ResponseRecorder {
	return h.postSignedAt(ft.Now(), body, header...)
}

// postSignedAt sends a body that was signed at a time.
func (h *fixture) postSignedAt(at time.Time, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json;UTF-8")
	altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte(body), ft.Token, at)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

func (h *fixture) delivered(t *testing.T) []events.ChangePodVerdict {
	t.Helper()
	var out []events.ChangePodVerdict
	for _, e := range h.broker.Delivered() {
		v, err := events.ParseChangePodVerdict(e)
		if err != nil {
			t.Error(err)
		}
		out = append(out, v)
	}
	return out
}

func (h *fixture) inbox() []v1alpha1.InboxVerdict { return h.ChangeWorkload(ft.Release).Status.Inbox }

// expectNoEffect checks that nothing was sent or written.
func (h *fixture) expectNoEffect(t *testing.T) {
	t.Helper()
	if n := len(h.broker.Delivered()); n != 0 || h.Patches() != 0 {
		t.Errorf("%d events and %d writes", n, h.Patches())
	}
}

func expect(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status is %d, want %d: %s", w.Code, status, w.Body)
	}
	want := `{"success":false`
	if status == http.StatusOK {
		want = `{"success":true}`
	}
	if !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("answer is %s", w.Body)
	}
}

func TestAVerdictForAKnownNodeGoesToTheBroker(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0)))
	expect(t, h.post(batchCallback("m")), http.StatusOK)
	got := h.delivered(t)
	if len(got) != 1 {
		t.Fatalf("%d events", len(got))
	}
	got[0].Time.Time = time.Time{}
	want := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(2), UID: "batch-2", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "m", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "error rate: 5xx above 1 %",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if len(h.inbox()) != 0 {
		t.Error("the verdict is in the inbox too")
	}
}

func TestTheEventOfAVerdictContinuesTheTraceOfItsRelease(t *testing.T) {
	traced := map[string]string{v1alpha1.TraceparentAnnotation: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"}
	release, batch := ft.NewRelease(orderNode("o")), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))
	release.Annotations, batch.Annotations = traced, traced
	want := map[string]trace.SpanContext{
		batchCallback("n"): trace.SpanContextFromContext(releasetrace.OfBatch(t.Context(), batch)),
		orderCallback("o"): trace.SpanContextFromContext(releasetrace.OfRelease(t.Context(), release)),
	}
	for body, span := range want {
		h := newConfiguredFixture(t, release.DeepCopy(), batch.DeepCopy())
		var got trace.SpanContext
		h.options.Broker = deliverer(func(ctx context.Context) error {
			got = trace.SpanContextFromContext(ctx)
			return nil
		})
		h.handler = callback.New(h.options)
		expect(t, h.post(body), http.StatusOK)
		if !got.IsValid() || !got.Equal(span) {
			t.Errorf("the event has span %v, want %v", got, span)
		}
	}
}

func TestAVerdictThatTheBrokerDoesNotAcceptIsStoredInTheInbox(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	h.broker.FailDeliveries(errors.New("no broker"))
	for range 2 {
		expect(t, h.post(batchCallback("n")), http.StatusOK)
	}
	inbox := h.inbox()
	if len(inbox) != 1 || inbox[0].NodeID != "n" || inbox[0].Verdict != "fail" || inbox[0].Message == "" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictIsStoredInTheInboxIfTheBrokerIsSlow(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	clock := clocktesting.NewFakeClock(ft.Now())
	var timeout time.Duration
	slow := deliverer(func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		timeout = time.Until(deadline)
		return context.DeadlineExceeded
	})
	h.handler = callback.New(callback.Options{
		Change: h.Change, Server: ft.NewClients(h.Cluster, clock), Broker: slow, Signer: ft.Keys(), Clock: clock, Meter: noop.Meter{},
	})
	expect(t, h.post(batchCallback("n")), http.StatusOK)
	if timeout <= 0 || timeout > 4*time.Second || len(h.inbox()) != 1 {
		t.Errorf("timeout of the delivery is %s, the inbox has %d entries", timeout, len(h.inbox()))
	}
}

func TestAVerdictThatIsNeitherDeliveredNorStoredIsAnswered503(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	h.broker.FailDeliveries(errors.New("no broker"))
	h.FailPatches(errors.New("no API server"))
	h.setStoreTimeout(t, shortTimeout)
	expect(t, h.post(batchCallback("n")), http.StatusServiceUnavailable)
}

// A pass that waited for room would keep one of the callbacks that are handled at a time, and fails
// would not be handled: only a pass can be retrieved from the server again.
func TestAPassWithoutRoomInTheInboxDoesNotWait(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		for i := range functions.MaxInbox {
			w.Status.Inbox = append(w.Status.Inbox, v1alpha1.InboxVerdict{ID: fmt.Sprint(i), Verdict: "fail"})
		}
	}), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	h.broker.FailDeliveries(errors.New("no broker"))
	h.setStoreTimeout(t, 2*time.Second)
	fail := batchCallback("n")
	pass := strings.NewReplacer("FAIL", "PASS", `"checkPass":false`, `"checkPass":true`, `"verdict":"fail"`, `"verdict":"pass"`).Replace(fail)
	reads := func(body string) int {
		h.Change.ClearActions()
		expect(t, h.post(body), http.StatusServiceUnavailable)
		return h.Gets("changeworkloads")
	}
	if ofPass, ofFail := reads(pass), reads(fail); ofPass != 1 || ofFail < 2 {
		t.Errorf("a pass read the release %d times, want once; a fail %d times, want several", ofPass, ofFail)
	}
}

func TestReadsOfTheConfigurationAreRetried(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	unreachable := true
	h.Kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		was := unreachable
		unreachable = false
		return was, nil, errors.New("connection refused")
	})
	expect(t, h.post(batchCallback("n")), http.StatusOK)
	if n := len(h.delivered(t)); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAnEarlyVerdictIsStoredInTheInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second)))
		for range 2 {
			expect(t, h.post(batchCallback("n")), http.StatusOK)
		}
		expect(t, h.post(batchCallback("m")), http.StatusOK)
		var nodes []string
		for _, v := range h.inbox() {
			nodes = append(nodes, v.NodeID)
		}
		if diff := cmp.Diff([]string{"n", "m"}, nodes); diff != "" {
			t.Error(diff)
		}
		if n := len(h.broker.Delivered()); n != 0 {
			t.Errorf("%d events", n)
		}
	})
}

// The answer of the start is written while its verdict waits.
func TestAnEarlyVerdictIsDeliveredAsSoonAsItsNodeIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		body    string
		release *v1alpha1.ChangeWorkload
		write   func(h *fixture)
		want    string
	}{
		"batch": {
			batchCallback("n"), ft.NewRelease(),
			func(h *fixture) { h.Write(ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))) },
			events.TypeChangePodVerdict,
		},
		"order": {
			orderCallback("o"), ft.NewRelease(orderStarting), func(h *fixture) { h.Write(ft.NewRelease(orderNode("o"))) }, events.TypeOrderVerdict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, tc.release, ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second)))
			reads := 0
			h.Change.PrependReactor("get", "changeworkloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				if reads++; reads == 2 {
					tc.write(h)
				}
				return false, nil, nil
			})
			h.setStoreTimeout(t, time.Minute)
			expect(t, h.post(tc.body), http.StatusOK)
			sent := h.broker.Delivered()
			if len(sent) != 1 || sent[0].Type() != tc.want || len(h.inbox()) != 0 {
				t.Errorf("sent %v after %d reads, and the inbox has %v", sent, reads, h.inbox())
			}
		})
	}
}

func TestVerdictsForUnknownTargetsAreAnswered200AndHaveNoEffect(t *testing.T) {
	for name, h := range map[string]*fixture{
		"unknown order": newConfiguredFixture(t),
		"unknown node":  newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("another", 0))),
		"node of another release": newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0),
			func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "another" })),
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, h.post(batchCallback("n")), http.StatusOK)
			h.expectNoEffect(t)
		})
	}
}

// orderCallback returns a fail of a POST check of the order, as the server sends it.
func orderCallback(node string) string {
	return strings.Replace(batchCallback(node), "CHANGE_BATCH", "CHANGE_ORDER", 1)
}

// orderStarting adds a start of the order that is in flight.
func orderStarting(w *v1alpha1.ChangeWorkload) {
	w.Status.Order.Submissions = []v1alpha1.Submission{{Stage: v1alpha1.StagePre, IntentTime: metav1.NewMicroTime(ft.Now()), Attempts: 1}}
}

func orderNode(node string) func(*v1alpha1.ChangeWorkload) {
	return func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = node }
}

func TestAVerdictOfTheOrderGoesToTheBroker(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(orderNode("o")), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	expect(t, h.post(orderCallback("o")), http.StatusOK)
	sent := h.broker.Delivered()
	if len(sent) != 1 || sent[0].Type() != events.TypeOrderVerdict {
		t.Fatalf("delivered %v", sent)
	}
	got, err := events.ParseOrderVerdict(sent[0])
	if err != nil {
		t.Fatal(err)
	}
	got.Time.Time = time.Time{}
	want := events.OrderVerdict{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, BizExecOrderID: ft.OrderID,
		NodeID: "o", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "error rate: 5xx above 1 %",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAVerdictOfTheOrderThatTheBrokerDoesNotAcceptIsStoredInTheInbox(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(orderNode("o")))
	h.broker.FailDeliveries(errors.New("no broker"))
	for range 2 {
		expect(t, h.post(orderCallback("o")), http.StatusOK)
	}
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "o" || inbox[0].Message == "" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAnEarlyVerdictOfTheOrderIsStoredInTheInbox(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(orderStarting))
	expect(t, h.post(orderCallback("o")), http.StatusOK)
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "o" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictOfAnOrderThatWasNotStartedHasNoEffect(t *testing.T) {
	h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	expect(t, h.post(orderCallback("o")), http.StatusOK)
	h.expectNoEffect(t)
}

func TestUnauthenticatedCallbacksAreRejectedAndHaveNoEffect(t *testing.T) {
	prefix := altershield.DefaultHeaderPrefix
	for name, header := range map[string][]string{
		"no signature":        {prefix + altershield.HeaderSign, ""},
		"malformed signature": {prefix + altershield.HeaderSign, "X"},
		"wrong signature":     {prefix + altershield.HeaderSign, strings.Repeat("X", 44)},
		"other platform":      {prefix + altershield.HeaderPlatform, "other"},
		"other timestamp":     {prefix + altershield.HeaderTimestamp, fmt.Sprint(ft.Now().Add(-time.Second).UnixMilli())},
		"event with wrong signature": {prefix + altershield.HeaderSign, "X", "Ce-Specversion", "1.0", "Ce-Id", "1",
			"Ce-Source", "/s", "Ce-Type", events.TypeChangePodVerdict},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			expect(t, h.post(batchCallback("n"), header...), http.StatusUnauthorized)
			h.expectNoEffect(t)
		})
	}
}

func TestThePreviousTokenIsAcceptedUntilItIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		previous string
		status   int
	}{
		"while the token is replaced": {ft.Token, http.StatusOK},
		"afterwards":                  {"", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			c.ConfigureTokens("http://server.example.com", "new", tc.previous)
			expect(t, newFixture(t, c).post(batchCallback("n")), tc.status)
		})
	}
}

// The signature is valid: the timestamp alone decides.
func TestACallbackWithATimestampBeyondMaxSkewIsRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		skew time.Duration
		want int
	}{
		"an hour old":             {-time.Hour, http.StatusUnauthorized},
		"older than max-skew":     {-altershield.DefaultMaxSkew - time.Second, http.StatusUnauthorized},
		"as old as max-skew":      {-altershield.DefaultMaxSkew, http.StatusOK},
		"ahead by max-skew":       {altershield.DefaultMaxSkew, http.StatusOK},
		"ahead by more than that": {altershield.DefaultMaxSkew + time.Second, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			expect(t, h.postSignedAt(ft.Now().Add(tc.skew), batchCallback("n")), tc.want)
			if tc.want != http.StatusOK {
				h.expectNoEffect(t)
			}
		})
	}
}

func TestWithoutATokenCallbacksAreRejected(t *testing.T) {
	for name, configure := range map[string]func(*ft.Cluster){
		"no configuration":      func(*ft.Cluster) {},
		"empty token":           func(c *ft.Cluster) { c.Configure("", "") },
		"server without token":  func(c *ft.Cluster) { c.Configure("http://server.example.com", "") },
		"invalid and no token":  func(c *ft.Cluster) { c.Configure("server", "") },
		"invalid header-prefix": func(c *ft.Cluster) { misconfigure(t, c, "header-prefix", "X AlterShield") },
		"invalid max-skew":      func(c *ft.Cluster) { misconfigure(t, c, "max-skew", "300") },
		"no platform":           func(c *ft.Cluster) { misconfigure(t, c, "platform", "") },
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			configure(c)
			h := newFixture(t, c)
			expect(t, h.post(batchCallback("n")), http.StatusServiceUnavailable)
			h.expectNoEffect(t)
		})
	}
}

func TestUnreadableCallbacksAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		header []string
		want   int
	}{
		"not JSON":              {"hello", nil, http.StatusBadRequest},
		"no node":               {`{"callbackRequest":{"bizExecOrderId":"a","defenseStageEnum":"PRE"}}`, nil, http.StatusBadRequest},
		"event of another type": {`{}`, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "x"}, http.StatusBadRequest},
		"event without id":      {`{}`, []string{"Ce-Specversion", "1.0", "Ce-Source", "/s", "Ce-Type", events.TypeChangePodVerdict}, http.StatusBadRequest},
		"truncated event":       {`{"specversion":"1.0"`, []string{"Content-Type", "application/cloudevents+json"}, http.StatusBadRequest},
		"more than a megabyte":  {strings.Repeat(" ", 1<<20+1), nil, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			expect(t, h.post(tc.body, tc.header...), tc.want)
			h.expectNoEffect(t)
		})
	}
}

func TestABatchOfEventsIsAcceptedAsAWhole(t *testing.T) {
	one := func(node string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":%q,"data":{"bizExecOrderId":%q,"nodeId":%q,"stage":"POST","verdict":"fail"}}`,
			node, events.TypeChangePodVerdict, ft.OrderID, node)
	}
	batches := []runtime.Object{ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0))}
	header := []string{"Content-Type", "application/cloudevents-batch+json; charset=UTF-8"}

	h := newConfiguredFixture(t, batches...)
	expect(t, h.post("["+one("n")+","+one("m")+"]", header...), http.StatusOK)
	if n := len(h.delivered(t)); n != 2 {
		t.Errorf("%d events", n)
	}
	h = newConfiguredFixture(t, batches...)
	expect(t, h.post("["+one("n")+","+one("")+"]", header...), http.StatusBadRequest)
	h.expectNoEffect(t)
}

func TestTheOriginalRoutesAreServed(t *testing.T) {
	h := newConfiguredFixture(t)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/openapi/altershield/liveTest", nil))
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != `{"code":0,"message":"Hello world"}` {
		t.Errorf("got %d %s", w.Code, got)
	}
	w = httptest.NewRecorder()
	h.handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	expect(t, w, http.StatusMethodNotAllowed)
}

// The fake server sends callbacks exactly as the published server does.
func TestCallbacksOfTheServerAreAcceptedInEveryForm(t *testing.T) {
	for _, as := range []string{"json", "binary", "structured", "batched"} {
		t.Run(as, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			var h *fixture
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }))
			defer front.Close()
			server := ft.NewServerDouble(t, c, front.URL+path)
			h = newFixture(t, c)
			if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second))); err != nil {
				t.Fatal(err)
			}
			server.Script(t, double.Script{Default: double.Behaviour{As: as, Verdict: "fail", Message: "find error"}})
			node := server.NewNode(t)
			inbox := h.inbox()
			if len(inbox) != 1 || inbox[0].NodeID != node || inbox[0].Verdict != "fail" || inbox[0].Message == "" {
				t.Errorf("inbox is %+v, callbacks are %+v", inbox, server.Log().Callbacks)
			}
			if results := inbox[0].PodResults; as != "json" && (len(results) != 1 || results[0].Message != "find error") {
				t.Errorf("pod results are %+v", results)
			}
			for _, sent := range server.Log().Callbacks {
				if sent.Status != http.StatusOK {
					t.Errorf("status of callback as %s is %d", sent.As, sent.Status)
				}
			}
		})
	}
}

type deliverer func(context.Context) error

func (d deliverer) Deliver(ctx context.Context, _ event.Event) error { return d(ctx) }
