package callback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/functions/callback"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

const path = "/openapi/altershield/callback"

// house is a callback with what is around it.
type house struct {
	*ft.Cluster
	broker  *eventstest.Recorder
	options callback.Options
	handler http.Handler
}

func newHouse(t *testing.T, c *ft.Cluster) *house {
	t.Helper()
	clock := clocktesting.NewFakeClock(ft.Now())
	h := &house{Cluster: c, broker: &eventstest.Recorder{}}
	h.options = callback.Options{
		Change: c.Change, Server: ft.NewServer(c, clock), Broker: h.broker, Clock: clock, Meter: noop.Meter{},
	}
	h.patience(t, 10*time.Second)
	return h
}

// impatient is for what is tried in vain.
const impatient = 100 * time.Millisecond

// patience is how long what cannot be read or stored is tried.
func (h *house) patience(t *testing.T, d time.Duration) {
	t.Helper()
	h.options.StoreTimeout = d
	h.handler = callback.New(h.options)
}

// configured returns a house with a token and a server.
func configured(t *testing.T, objects ...runtime.Object) *house {
	t.Helper()
	c := ft.New(t, objects...)
	c.Configure("http://server.example.com", ft.Token)
	return newHouse(t, c)
}

// said is a fail of a node's POST check, as the server writes it.
func said(node string) string {
	return fmt.Sprintf(`{"callbackRequest":{"bizExecOrderId":%q,"changeSceneKey":"s","defenseStageEnum":"POST","nodeId":%q,`+
		`"verdict":{"allFinish":true,"checkPass":false,"rules":[{"verdict":"FAIL","name":"error rate","msg":"5xx above 1 %%"}],"verdict":"fail"}},`+
		`"changeCheckType":"CHANGE_BATCH"}`, ft.OrderID, node)
}

// post sends a signed body as the server does.
func (h *house) post(body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json;UTF-8")
	altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte(body), ft.Token, ft.Now())
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

func (h *house) delivered(t *testing.T) []events.ChangePodVerdict {
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

func (h *house) inbox() []v1alpha1.InboxVerdict { return h.ChangeWorkload(ft.Release).Status.Inbox }

// untouched reports whatever was sent or written.
func (h *house) untouched(t *testing.T) {
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
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0)))
	expect(t, h.post(said("m")), http.StatusOK)
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

func TestAVerdictThatTheBrokerDoesNotAcceptIsInTheInbox(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	h.broker.FailDeliveries(errors.New("no broker"))
	for range 2 {
		expect(t, h.post(said("n")), http.StatusOK)
	}
	inbox := h.inbox()
	if len(inbox) != 1 || inbox[0].NodeID != "n" || inbox[0].Verdict != "fail" || inbox[0].Message == "" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestASlowBrokerDoesNotKeepAVerdictInTheAir(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	clock := clocktesting.NewFakeClock(ft.Now())
	var given time.Duration
	slow := deliverer(func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		given = time.Until(deadline)
		return context.DeadlineExceeded
	})
	h.handler = callback.New(callback.Options{
		Change: h.Change, Server: ft.NewServer(h.Cluster, clock), Broker: slow, Clock: clock, Meter: noop.Meter{},
	})
	expect(t, h.post(said("n")), http.StatusOK)
	if given <= 0 || given > 3*time.Second || len(h.inbox()) != 1 {
		t.Errorf("the Broker had %s, the inbox has %d", given, len(h.inbox()))
	}
}

func TestOnlyIfNeitherTakesItAVerdictIsNotAccepted(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	h.broker.FailDeliveries(errors.New("no broker"))
	h.FailPatches(errors.New("no API server"))
	h.patience(t, impatient)
	expect(t, h.post(said("n")), http.StatusServiceUnavailable)
}

func TestAVerdictOutlivesAnAPIServerThatIsAwayForAMoment(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	away := true
	h.Kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		was := away
		away = false
		return was, nil, errors.New("connection refused")
	})
	expect(t, h.post(said("n")), http.StatusOK)
	if n := len(h.delivered(t)); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAnEarlyVerdictWaitsForItsNode(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second)))
	h.patience(t, impatient)
	for range 2 {
		expect(t, h.post(said("n")), http.StatusOK)
	}
	expect(t, h.post(said("m")), http.StatusOK)
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
}

// The answer of the start is written while its verdict waits.
func TestAnEarlyVerdictGoesToTheBrokerAsSoonAsItsNodeIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		said    string
		release *v1alpha1.ChangeWorkload
		write   func(h *house)
		want    string
	}{
		"of a batch": {
			said("n"), ft.NewRelease(),
			func(h *house) { h.Write(ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))) },
			events.TypeChangePodVerdict,
		},
		"of the order": {
			ofOrder("o"), ft.NewRelease(orderStarting), func(h *house) { h.Write(ft.NewRelease(orderNode("o"))) }, events.TypeOrderVerdict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := configured(t, tc.release, ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second)))
			looks := 0
			h.Change.PrependReactor("get", "changeworkloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				if looks++; looks == 2 {
					tc.write(h)
				}
				return false, nil, nil
			})
			h.patience(t, time.Minute)
			expect(t, h.post(tc.said), http.StatusOK)
			sent := h.broker.Delivered()
			if len(sent) != 1 || sent[0].Type() != tc.want || len(h.inbox()) != 0 {
				t.Errorf("after %d looks %v was sent, and the inbox has %v", looks, sent, h.inbox())
			}
		})
	}
}

func TestWhatNobodyKnowsIsAnsweredAlikeAndChangesNothing(t *testing.T) {
	for name, h := range map[string]*house{
		"an unknown order": configured(t),
		"an unknown node":  configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("another", 0))),
		"a node of another release": configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0),
			func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "another" })),
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, h.post(said("n")), http.StatusOK)
			h.untouched(t)
		})
	}
}

// ofOrder is a fail of the order as a whole, as the server writes it.
func ofOrder(node string) string {
	return strings.Replace(said(node), "CHANGE_BATCH", "CHANGE_ORDER", 1)
}

// orderStarting has the start of the order under way.
func orderStarting(w *v1alpha1.ChangeWorkload) {
	w.Status.Order.Submissions = []v1alpha1.Submission{{Stage: v1alpha1.StagePre, IntentTime: metav1.NewMicroTime(ft.Now()), Attempts: 1}}
}

func orderNode(node string) func(*v1alpha1.ChangeWorkload) {
	return func(w *v1alpha1.ChangeWorkload) { w.Status.Order.NodeID = node }
}

func TestAVerdictOfTheOrderAsAWholeGoesToTheBroker(t *testing.T) {
	h := configured(t, ft.NewRelease(orderNode("o")), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	expect(t, h.post(ofOrder("o")), http.StatusOK)
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

func TestAVerdictOfTheOrderThatTheBrokerDoesNotAcceptIsInTheInbox(t *testing.T) {
	h := configured(t, ft.NewRelease(orderNode("o")))
	h.broker.FailDeliveries(errors.New("no broker"))
	for range 2 {
		expect(t, h.post(ofOrder("o")), http.StatusOK)
	}
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "o" || inbox[0].Message == "" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAnEarlyVerdictOfTheOrderWaitsForItsNode(t *testing.T) {
	h := configured(t, ft.NewRelease(orderStarting))
	expect(t, h.post(ofOrder("o")), http.StatusOK)
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "o" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictOfAnOrderThatWasNotStartedChangesNothing(t *testing.T) {
	h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	expect(t, h.post(ofOrder("o")), http.StatusOK)
	h.untouched(t)
}

func TestWhoCannotSignIsRefusedAndChangesNothing(t *testing.T) {
	prefix := altershield.DefaultHeaderPrefix
	for name, header := range map[string][]string{
		"no signature":      {prefix + altershield.HeaderSign, ""},
		"a wrong signature": {prefix + altershield.HeaderSign, "X"},
		"another platform":  {prefix + altershield.HeaderPlatform, "other"},
		"an old timestamp":  {prefix + altershield.HeaderTimestamp, fmt.Sprint(ft.Now().Add(-time.Hour).UnixMilli())},
		"an event with a wrong signature": {prefix + altershield.HeaderSign, "X", "Ce-Specversion", "1.0", "Ce-Id", "1",
			"Ce-Source", "/s", "Ce-Type", events.TypeChangePodVerdict},
	} {
		t.Run(name, func(t *testing.T) {
			h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			expect(t, h.post(said("n"), header...), http.StatusUnauthorized)
			h.untouched(t)
		})
	}
}

func TestWithoutATokenNobodyCanBeBelieved(t *testing.T) {
	for name, configure := range map[string]func(*ft.Cluster){
		"nothing is configured":       func(*ft.Cluster) {},
		"the token is empty":          func(c *ft.Cluster) { c.Configure("", "") },
		"the server has no token":     func(c *ft.Cluster) { c.Configure("http://server.example.com", "") },
		"the configuration is a mess": func(c *ft.Cluster) { c.Configure("server", ft.Token) },
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			configure(c)
			h := newHouse(t, c)
			expect(t, h.post(said("n")), http.StatusServiceUnavailable)
			h.untouched(t)
		})
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		header []string
		want   int
	}{
		"no JSON":                  {"hello", nil, http.StatusBadRequest},
		"no node":                  {`{"callbackRequest":{"bizExecOrderId":"a","defenseStageEnum":"PRE"}}`, nil, http.StatusBadRequest},
		"an event of another type": {`{}`, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "x"}, http.StatusBadRequest},
		"an event without id":      {`{}`, []string{"Ce-Specversion", "1.0", "Ce-Source", "/s", "Ce-Type", events.TypeChangePodVerdict}, http.StatusBadRequest},
		"half an event":            {`{"specversion":"1.0"`, []string{"Content-Type", "application/cloudevents+json"}, http.StatusBadRequest},
		"more than a megabyte":     {strings.Repeat(" ", 1<<20+1), nil, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			h := configured(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			expect(t, h.post(tc.body, tc.header...), tc.want)
			h.untouched(t)
		})
	}
}

func TestABatchOfEventsIsAllOrNothing(t *testing.T) {
	one := func(node string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":%q,"data":{"bizExecOrderId":%q,"nodeId":%q,"stage":"POST","verdict":"fail"}}`,
			node, events.TypeChangePodVerdict, ft.OrderID, node)
	}
	batches := []runtime.Object{ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0))}
	header := []string{"Content-Type", "application/cloudevents-batch+json; charset=UTF-8"}

	h := configured(t, batches...)
	expect(t, h.post("["+one("n")+","+one("m")+"]", header...), http.StatusOK)
	if n := len(h.delivered(t)); n != 2 {
		t.Errorf("%d events", n)
	}
	h = configured(t, batches...)
	expect(t, h.post("["+one("n")+","+one("")+"]", header...), http.StatusBadRequest)
	h.untouched(t)
}

func TestTheRoutesOfTheOriginalStay(t *testing.T) {
	h := configured(t)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/openapi/altershield/liveTest", nil))
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != `{"code":0,"message":"Hello world"}` {
		t.Errorf("got %d %s", w.Code, got)
	}
	w = httptest.NewRecorder()
	h.handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	expect(t, w, http.StatusMethodNotAllowed)
}

// The double posts as the published server does, to the letter.
func TestTheDoublesVerdictsArriveInEveryForm(t *testing.T) {
	for _, as := range []string{"json", "binary", "structured", "batched"} {
		t.Run(as, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			var h *house
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }))
			defer front.Close()
			j := ft.NewJudge(t, c, front.URL+path)
			h = newHouse(t, c)
			h.patience(t, impatient)
			if err := c.Change.Tracker().Add(ft.NewBatch(1, []string{"a"}, ft.Intent(v1alpha1.StagePre, time.Second))); err != nil {
				t.Fatal(err)
			}
			j.Script(t, double.Script{Default: double.Behaviour{As: as, Verdict: "fail", Message: "find error"}})
			node := j.NewNode(t)
			inbox := h.inbox()
			if len(inbox) != 1 || inbox[0].NodeID != node || inbox[0].Verdict != "fail" || inbox[0].Message == "" {
				t.Errorf("inbox is %+v, callbacks are %+v", inbox, j.Log().Callbacks)
			}
			if results := inbox[0].PodResults; as != "json" && (len(results) != 1 || results[0].Message != "find error") {
				t.Errorf("results are %+v", results)
			}
			for _, sent := range j.Log().Callbacks {
				if sent.Status != http.StatusOK {
					t.Errorf("answer to %s is %d", sent.As, sent.Status)
				}
			}
		})
	}
}

type deliverer func(context.Context) error

func (d deliverer) Deliver(ctx context.Context, _ event.Event) error { return d(ctx) }
