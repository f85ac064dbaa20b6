package callback_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// knowing returns a house that has delivered a verdict for node n of the
// release; its batch 2 has node m and its order node o.
func knowing(t *testing.T) *house {
	t.Helper()
	h := configured(t, ft.NewRelease(orderNode("o")),
		ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.NewBatch(2, []string{"b"}, ft.Started("m", 0)))
	expect(t, h.post(said("n")), http.StatusOK)
	if len(h.broker.Delivered()) != 1 {
		t.Fatal("the first verdict did not arrive")
	}
	h.Change.ClearActions()
	return h
}

// reads are the requests for releases, and those for batches.
func (h *house) reads() (releases, batches int) {
	return h.Gets("changeworkloads") + h.Lists("changeworkloads"), h.Gets("changepods") + h.Lists("changepods")
}

func TestAnotherVerdictOfAnOrderNeedsOneListOfBatches(t *testing.T) {
	h := knowing(t)
	expect(t, h.post(said("m")), http.StatusOK)
	if releases, batches := h.reads(); releases != 0 || batches != 1 {
		t.Errorf("%d reads of releases and %d of batches", releases, batches)
	}
	got := h.delivered(t)
	if len(got) != 2 {
		t.Fatalf("%d events", len(got))
	}
	want := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(2), UID: "batch-2", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "m", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "error rate: 5xx above 1 %",
	}
	got[1].Time.Time = time.Time{}
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTheBrokerDoesNotTakeOfAKnownOrderIsInTheInbox(t *testing.T) {
	h := knowing(t)
	h.broker.FailDeliveries(errors.New("no broker"))
	expect(t, h.post(said("m")), http.StatusOK)
	if inbox := h.inbox(); len(inbox) != 1 || inbox[0].NodeID != "m" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestWhatAKnownOrderDoesNotSettleIsLookedForAsEver(t *testing.T) {
	owner := func(uid types.UID) func(*v1alpha1.ChangePod) {
		return func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = uid }
	}
	begun := func(h *house) {
		h.Write(ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.UID = "later" }))
	}
	for name, tc := range map[string]struct {
		meanwhile func(h *house)
		said      string
		// sent is the type of the event, if there is one, and early says that the
		// verdict waits in the inbox.
		sent  string
		early bool
	}{
		"a verdict of the order":                 {func(*house) {}, ofOrder("o"), events.TypeOrderVerdict, false},
		"one that does not say what was checked": {func(*house) {}, strings.Replace(said("o"), "CHANGE_BATCH", "", 1), events.TypeOrderVerdict, false},
		"an unknown node":                        {func(*house) {}, said("x"), "", false},
		"a node of another release":              {func(h *house) { h.Write(ft.NewBatch(2, []string{"b"}, ft.Started("m", 0), owner("another"))) }, said("m"), "", false},
		"a start that is under way":              {func(h *house) { h.Write(ft.NewBatch(2, []string{"b"}, ft.Intent(v1alpha1.StagePre, time.Second))) }, said("m"), "", true},
		"a release that was made anew":           {func(h *house) { begun(h); h.Write(ft.NewBatch(2, []string{"b"}, ft.Started("m", 0), owner("later"))) }, said("m"), events.TypeChangePodVerdict, false},
		"the batch of a release that is gone":    {begun, said("m"), events.TypeChangePodVerdict, false}, // function verdict drops what is outdated
		"an API server that is away for a moment": {func(h *house) {
			away := true
			h.Change.PrependReactor("list", "changepods", func(clienttesting.Action) (bool, runtime.Object, error) {
				was := away
				away = false
				return was, nil, errors.New("connection refused")
			})
		}, said("m"), events.TypeChangePodVerdict, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := knowing(t)
			tc.meanwhile(h)
			expect(t, h.post(tc.said), http.StatusOK)
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
