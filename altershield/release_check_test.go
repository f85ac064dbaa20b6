package altershield

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// releaseClient returns a client for the scene of release checks.
func (w *fixture) releaseClient(t *testing.T) *Client {
	t.Helper()
	c := New(w.config.ForReleaseCheck(), WithPause(time.Millisecond))
	t.Cleanup(c.Close)
	return c
}

func newCheckRelease() CheckRelease {
	return CheckRelease{
		OrderID: ReleaseCheckOrderID("one", "default", "Deployment", "web", "v1", 1), Title: "web", Timeout: 50 * time.Millisecond,
		Params: map[string]string{"namespace": "default", "workloadName": "web"},
	}
}

func TestAReleaseIsCheckedInOneCall(t *testing.T) {
	failed := Rule{Name: "freeze", Verdict: "FAIL", Msg: "not on Friday", URL: "http://rules/1"}
	for name, tc := range map[string]struct {
		then string
		want ReleaseCheckAnswer
	}{
		"a pass": {
			`{"verdict":"pass","rules":[{"name":"quota","verdict":"PASS"}]}`,
			ReleaseCheckAnswer{Verdict: "pass", Rules: []Rule{{Name: "quota", Verdict: "PASS"}}},
		},
		"a pass without rules is unconfirmed": {`{"verdict":"pass","noRules":true}`, ReleaseCheckAnswer{Verdict: "pass", Unconfirmed: true}},
		"a timeout is a pass without rules": {
			`{"never":true}`, ReleaseCheckAnswer{Verdict: "pass", Unconfirmed: true, Message: "the check took longer than its time-out"},
		},
		"a fail with the reason": {
			`{"verdict":"fail","rules":[{"name":"freeze","verdict":"FAIL","msg":"not on Friday","url":"http://rules/1"}]}`,
			ReleaseCheckAnswer{Verdict: "fail", Rules: []Rule{failed}, Message: "freeze: not on Friday (http://rules/1)"},
		},
		"a fail without rules": {`{"verdict":"fail","noRules":true,"message":"closed"}`, ReleaseCheckAnswer{Verdict: "fail", Message: "closed"}},
		"another verdict":      {`{"verdict":"inconc","noRules":true}`, ReleaseCheckAnswer{Verdict: "inconc"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.script(t, `{"checks":[{"match":{"step":"RELEASE","namespace":"default","workload":"web"},"then":`+tc.then+`}]}`)
			got, err := w.releaseClient(t).CheckRelease(t.Context(), newCheckRelease())
			if err != nil {
				t.Fatal(err)
			}
			if got.OrderID == "" || got.NodeID == "" || got.URL == "" {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(ReleaseCheckAnswer{}, "OrderID", "NodeID", "URL")); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

func TestARepeatedReleaseCheckHasOneOrder(t *testing.T) {
	w := newFixture(t, nil)
	c := w.releaseClient(t)
	first, err := c.CheckRelease(t.Context(), newCheckRelease())
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.CheckRelease(t.Context(), newCheckRelease())
	if err != nil {
		t.Fatal(err)
	}
	if first.OrderID != second.OrderID || first.NodeID != second.NodeID || len(w.double.Orders()) != 1 {
		t.Errorf("%+v, then %+v", first, second)
	}
}

func TestAReleaseCheckIsRetriedAfterALostAnswer(t *testing.T) {
	w := newFixture(t, nil)
	w.script(t, `{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"pass"}}],
		"faults":[{"action":"submitAndStartChangeExecOrder","times":1,"fault":"reset","after":true}]}`)
	got, err := w.releaseClient(t).CheckRelease(t.Context(), newCheckRelease())
	if err != nil || got.Verdict != "pass" || got.Unconfirmed {
		t.Errorf("%+v, %v", got, err)
	}
	if n := len(w.double.Nodes()); n != 1 {
		t.Errorf("%d nodes", n)
	}
}

func TestAReleaseCheckInASceneOfAnotherGenerationIsRejected(t *testing.T) {
	w := newFixture(t, nil)
	if _, err := w.client.CheckRelease(t.Context(), newCheckRelease()); !IsState(err) {
		t.Errorf("got %v", err)
	}
}

func TestAReleaseCheckEndsAtTheCallersDeadline(t *testing.T) {
	w := newFixture(t, nil)
	w.script(t, `{"faults":[{"fault":"slow","delay":"30s"}]}`)
	client := w.releaseClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := client.CheckRelease(ctx, newCheckRelease())
	var callErr *CallError
	if !errors.As(err, &callErr) || callErr.Kind != KindTimeout {
		t.Errorf("got %v", err)
	}
}

func TestAReleaseCheckAndItsReleaseHaveDifferentIDs(t *testing.T) {
	ref := v1alpha1.WorkloadRef{Kind: "Deployment", Name: strings.Repeat("n", 253)}
	id := ReleaseCheckOrderID("one", "default", ref.Kind, ref.Name, "v1", 1)
	if id == v1alpha1.OrderID("one", "default", ref, "v1", 1) || len(id) > maxOrderID {
		t.Error(id)
	}
	for name, other := range map[string]string{
		"attempt": ReleaseCheckOrderID("one", "default", ref.Kind, ref.Name, "v1", 2),
		"version": ReleaseCheckOrderID("one", "default", ref.Kind, ref.Name, "v2", 1),
		"kind":    ReleaseCheckOrderID("one", "default", "DaemonSet", ref.Name, "v1", 1),
		"cluster": ReleaseCheckOrderID("two", "default", ref.Kind, ref.Name, "v1", 1),
	} {
		if other == id {
			t.Errorf("another %s has the same id", name)
		}
	}
}

func TestAReleaseVerdictMayBeIncomplete(t *testing.T) {
	for domain, want := range map[string]ReleaseCheckAnswer{
		`{"nodeId":"n","verdict":null}`: {NodeID: "n"},
		`{"nodeId":"n"}`:                {NodeID: "n"},
		`{"nodeId":"n","verdict":{"rules":null,"msg":null,"verdict":null}}`: {NodeID: "n"},
		`{"nodeId":"n","verdict":{"checkPass":false,"msg":"closed"}}`:       {NodeID: "n", Verdict: "fail", Message: "closed"},
		`{"nodeId":"n","verdict":{"verdict":"pass","allFinish":false,"rules":[{"name":"r","verdict":"PASS"}]}}`: {
			NodeID: "n", Verdict: "pass", Rules: []Rule{{Name: "r", Verdict: "PASS"}}, Unconfirmed: true,
		},
	} {
		var got releaseDomain
		if err := json.Unmarshal([]byte(domain), &got); err != nil {
			t.Fatalf("%s: %v", domain, err)
		}
		if diff := cmp.Diff(want, got.answer()); diff != "" {
			t.Errorf("%s: -want +got: %s", domain, diff)
		}
	}
}
