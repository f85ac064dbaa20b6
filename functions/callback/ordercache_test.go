package callback_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions/callback"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// newCachedFixture returns a fixture that has delivered a verdict for node n of the
// release, and so has cached its order. Batch 2 has node m, the order has node o.
func newCachedFixture(t *testing.T) *fixture {
	t.Helper()
	h := newConfiguredFixture(t, ft.NewRelease(orderNode("o")),
		ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0)))
	batches, err := callback.NewBatches(h.Change)
	if err != nil {
		t.Fatal(err)
	}
	h.options.Batches = batches
	h.setStoreTimeout(t, 10*time.Second)
	expect(t, h.post(batchCallback("n")), http.StatusOK)
	if len(h.broker.Delivered()) != 1 {
		t.Fatal("the first verdict was not delivered")
	}
	return h
}

// fillBatches fills the cache of batches.
func (h *fixture) fillBatches(t *testing.T) {
	t.Helper()
	go func() { _ = h.options.Batches.Run(t.Context()) }()
	if !cache.WaitForCacheSync(t.Context().Done(), h.options.Batches.HasSynced) {
		t.Fatal("the cache of batches was not filled")
	}
	h.Change.ClearActions()
}

// reads returns the number of reads of releases and of batches.
func (h *fixture) reads() (releases, batches int) {
	return h.Gets("changeworkloads") + h.Lists("changeworkloads"), h.Gets("changepods") + h.Lists("changepods")
}

func TestAVerdictForACachedOrderFindsItsBatchWithoutARead(t *testing.T) {
	h := newCachedFixture(t)
	h.fillBatches(t)
	expect(t, h.post(batchCallback("m")), http.StatusOK)
	if releases, batches := h.reads(); releases != 0 || batches != 0 {
		t.Errorf("%d reads of releases and %d of batches", releases, batches)
	}
	got := h.delivered(t)
	want := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(2), UID: "batch-2", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "m", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "error rate: 5xx above 1 %",
	}
	got[len(got)-1].Time.Time = time.Time{}
	if diff := cmp.Diff(want, got[len(got)-1]); diff != "" {
		t.Error(diff)
	}
	expect(t, h.post(strings.Replace(batchCallback("m"), `"POST"`, `"PRE"`, 1)), http.StatusOK)
	got = h.delivered(t)
	if batch := got[len(got)-1].ChangePod; batch == nil || batch.Status.ChangePodID != "m" || len(batch.Spec.PodInfos) != 1 {
		t.Errorf("the copy of the batch is %+v", batch)
	}
}

func TestAVerdictForACachedOrderIsStoredInTheInboxWithoutABroker(t *testing.T) {
	h := newCachedFixture(t)
	h.fillBatches(t)
	h.broker.FailDeliveries(errors.New("no broker"))
	expect(t, h.post(batchCallback("m")), http.StatusOK)
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "m" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictThatTheCacheCannotResolveIsLookedUp(t *testing.T) {
	owner := func(uid types.UID) func(*v1alpha1.ChangePod) {
		return func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = uid }
	}
	replace := func(h *fixture) {
		h.Write(ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }))
	}
	for name, tc := range map[string]struct {
		meanwhile func(h *fixture)
		body      string
		// sent is the type of the event, or empty; early means that the verdict is
		// stored in the inbox.
		sent  string
		early bool
	}{
		"verdict of the order":              {func(*fixture) {}, orderCallback("o"), events.TypeOrderVerdict, false},
		"verdict without the type of check": {func(*fixture) {}, strings.Replace(batchCallback("o"), "CHANGE_BATCH", "", 1), events.TypeOrderVerdict, false},
		"unknown node":                      {func(*fixture) {}, batchCallback("x"), "", false},
		"node of another release":           {func(h *fixture) { h.Write(ft.NewBatch(2, []string{"b"}, ft.Started("m", 0), owner("another"))) }, batchCallback("m"), "", false},
		"start in flight":                   {func(h *fixture) { h.Write(ft.NewBatch(2, []string{"b"}, ft.Intent(v1alpha1.StagePre, time.Second))) }, batchCallback("m"), "", true},
		"release replaced": {func(h *fixture) {
			replace(h)
			h.Write(ft.NewBatch(2, []string{"b"}, ft.Started("m", 0), owner("later")))
		}, batchCallback("m"), events.TypeChangePodVerdict, false},
		"release replaced, batch not yet": {replace, batchCallback("m"), events.TypeChangePodVerdict, false}, // function verdict drops it as outdated
	} {
		t.Run(name, func(t *testing.T) {
			h := newCachedFixture(t)
			tc.meanwhile(h)
			h.fillBatches(t)
			expect(t, h.post(tc.body), http.StatusOK)
			sent := h.broker.Delivered()[1:]
			if (tc.sent == "") != (len(sent) == 0) || len(sent) > 1 || len(sent) == 1 && sent[0].Type() != tc.sent {
				t.Errorf("sent %v", sent)
			}
			if got := len(h.inbox()) == 1; got != tc.early {
				t.Errorf("inbox is %+v", h.inbox())
			}
		})
	}
}
