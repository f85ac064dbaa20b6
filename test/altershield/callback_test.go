package altershield

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

func TestCallbacksAreAsScripted(t *testing.T) {
	defaultRule := func(word string) []Rule {
		return []Rule{{
			ExternalRuleID: "double-1", ControlKey: "double", Status: "SUCCESS", Verdict: word, Msg: "as scripted",
			Stage: Pre, RiskLevel: "HIGH", Name: "double", Owner: "double",
		}}
	}
	said := func(word string, pass bool, rules []Rule) verdict {
		return verdict{AllFinish: true, CheckPass: pass, Rules: rules, Verdict: word}
	}
	for name, tc := range map[string]struct {
		behaviour string
		start     map[string]any
		want      verdict
		state     State
	}{
		"pass":                    {`{}`, nil, said("pass", true, defaultRule("PASS")), PreFinish},
		"fail with rules":         {`{"verdict":"fail","rules":[{"name":"r","verdict":"FAIL"}]}`, nil, said("fail", false, []Rule{{Name: "r", Verdict: "FAIL"}}), PreFinish},
		"fail":                    {`{"verdict":"fail"}`, nil, said("fail", false, defaultRule("FAIL")), PreFinish},
		"inconc":                  {`{"verdict":"inconc"}`, nil, said("inconc", false, defaultRule("INCONC")), PreFinish},
		"none":                    {`{"verdict":"none"}`, nil, said("none", false, defaultRule("NONE")), PreFinish},
		"an unknown word":         {`{"verdict":"xyz"}`, nil, said("xyz", false, defaultRule("XYZ")), PreFinish},
		"a timeout is a pass":     {`{"ending":"timeout","verdict":"fail"}`, nil, said("pass", true, []Rule{}), PreTimeout},
		"an exception is a pass":  {`{"ending":"exception"}`, nil, said("pass", true, []Rule{}), PreFail},
		"judged without rules":    {`{"noRules":true}`, nil, said("pass", true, []Rule{}), PreFinish},
		"an emergency":            {`{"emergency":true,"noRules":true}`, nil, verdict{AllFinish: true, CheckPass: true, Emergency: true, Rules: []Rule{}, Verdict: "pass"}, PreFinish},
		"an emergency of a start": {`{"noRules":true}`, map[string]any{"emergency": true}, verdict{AllFinish: true, CheckPass: true, Emergency: true, Rules: []Rule{}, Verdict: "pass"}, PreFinish},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.put(t, `{"default":`+tc.behaviour+`}`)
			b.call(t, actionOpenOrder, orderBody(nil))
			node := b.call(t, actionStartBatch, batch(tc.start)).node()
			b.idle(t)
			want := []callbackBody{{ChangeCheckType: "CHANGE_BATCH", CallbackRequest: callbackRequest{
				BizExecOrderID: "o", ChangeSceneKey: "scene", DefenseStageEnum: Pre, NodeID: node, Verdict: tc.want,
			}}}
			if diff := cmp.Diff(want, b.bodies(t)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if got := b.state(node); got != tc.state {
				t.Errorf("state %s, want %s", got, tc.state)
			}
		})
	}
}

func TestACallbackIsSignedAndHasTheServersContentType(t *testing.T) {
	b := newBench(t, nil)
	b.started(t)
	b.idle(t)
	r := b.received[0]
	if got := r.header.Get("Content-Type"); got != "application/json;UTF-8" {
		t.Error(got)
	}
	if r.header.Get("X-AlterShield-Platform") != "breakwater" || r.header.Get("X-AlterShield-Timestamp") != "1700000000000" ||
		r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), b.token) {
		t.Errorf("%v", r.header)
	}
}

func TestEachFaultOfACallbackCanBeScripted(t *testing.T) {
	for name, tc := range map[string]struct {
		behaviour string
		wrong     func(*bench, string) bool
	}{
		"a bad signature": {`{"badSignature":true}`, func(b *bench, _ string) bool {
			r := b.received[0]
			return r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), b.token)
		}},
		"an old timestamp, signed": {`{"skew":"-10m"}`, func(b *bench, _ string) bool {
			r := b.received[0]
			return r.header.Get("X-AlterShield-Timestamp") == "1699999400000" && r.header.Get("X-AlterShield-Sign") == sign("1699999400000", string(r.body), b.token)
		}},
		"an unknown node": {`{"unknownNode":true}`, func(b *bench, node string) bool {
			return bytes.Contains(b.received[0].body, []byte(`"nodeId":"unknown-`+node))
		}},
		"another check type": {`{"checkType":"CHANGE_ACTION"}`, func(b *bench, _ string) bool {
			return bytes.Contains(b.received[0].body, []byte(`"changeCheckType":"CHANGE_ACTION"`))
		}},
		"another body": {`{"badBody":"{]"}`, func(b *bench, _ string) bool { return string(b.received[0].body) == "{]" }},
	} {
		b := newBench(t, nil)
		b.put(t, `{"default":`+tc.behaviour+`}`)
		node := b.started(t)
		b.idle(t)
		if len(b.received) != 1 || !tc.wrong(b, node) {
			t.Errorf("%s: %+v", name, b.received)
		}
	}
}

func TestABehaviourWithoutACallbackSendsNone(t *testing.T) {
	for behaviour, state := range map[string]State{
		`{"never":true}`: PreSubmit, `{"lost":true}`: PreFinish, `{"skipCheck":true}`: PreSubmit,
	} {
		b := newBench(t, nil)
		b.put(t, `{"default":`+behaviour+`}`)
		node := b.started(t)
		b.idle(t)
		if len(b.received) != 0 || b.state(node) != state {
			t.Errorf("%s: %d callbacks, state %s", behaviour, len(b.received), b.state(node))
		}
	}
}

func TestTheCallbackOfAnOrderNodeHasItsCheckType(t *testing.T) {
	b := newBench(t, nil)
	b.call(t, actionOpenOrder, orderBody(nil))
	b.call(t, actionStartOrder, batch(nil))
	b.idle(t)
	if got := b.bodies(t)[0].ChangeCheckType; got != "CHANGE_ORDER" {
		t.Error(got)
	}
}

func TestAnEarlyCallbackComesBeforeTheAnswer(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, `{"default":{"early":true,"copies":2}}`)
	b.started(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.received) != 2 {
		t.Errorf("%d callbacks had come when the start was answered", len(b.received))
	}
}

func TestCallbacksComeLateTwiceAndOutOfOrder(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, `{"checks":[{"match":{"stage":"PRE"},"then":{"delay":"1s","lag":"1s","copies":2,"copyEvery":"10s"}}]}`)
	node := b.started(t)
	b.step(t, time.Second)
	b.step(t, 0) // the check has ended, and the callback waits
	if len(b.received) != 0 || b.state(node) != PreFinish {
		t.Errorf("%d callbacks, state %s", len(b.received), b.state(node))
	}
	b.step(t, time.Second)
	b.await(t)
	b.call(t, actionFinish, nodeBody(node, nil))
	b.await(t)
	b.step(t, 10*time.Second)
	b.await(t)
	var stages []Stage
	for _, body := range b.bodies(t) {
		stages = append(stages, body.CallbackRequest.DefenseStageEnum)
	}
	if diff := cmp.Diff([]Stage{Pre, Post, Pre}, stages); diff != "" {
		t.Error(diff)
	}
}

func TestACheckThatTakesTooLongTimesOutAndIsJudgedLater(t *testing.T) {
	b := newBench(t, func(o *Options) { o.CheckTimeout = time.Minute })
	b.put(t, `{"checkTimeout":"3s","default":{"delay":"10s"}}`)
	node := b.started(t)
	b.step(t, 3*time.Second)
	b.await(t)
	if got := b.bodies(t)[0].CallbackRequest.Verdict; got.Verdict != "pass" || len(got.Rules) != 0 || b.state(node) != PreTimeout {
		t.Errorf("%+v, %s", got, b.state(node))
	}
	b.step(t, 7*time.Second)
	b.idle(t)
	if got := b.Nodes()[0]; got.State != PreTimeout || !got.Passed[Pre] || len(b.bodies(t)) != 1 {
		t.Errorf("%+v, %d callbacks", got, len(b.bodies(t)))
	}
}

func TestVerdictsAsCloudEvents(t *testing.T) {
	for _, mode := range []string{"binary", "structured", "batched"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, nil)
			b.put(t, `{"default":{"as":"`+mode+`","verdict":"fail","message":"find error"}}`)
			b.call(t, actionOpenOrder, orderBody(nil))
			node := b.call(t, actionStartBatch, batch(map[string]any{"extInfo": map[string]any{"pods": []string{"a", "b"}}})).node()
			b.idle(t)
			r := b.received[0]
			if r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), b.token) {
				t.Error("not signed over the body")
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", bytes.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = r.header
			if batched := cehttp.IsHTTPBatch(request.Header); batched != (mode == "batched") {
				t.Errorf("batched: %v", batched)
			}
			checkEvent(t, request, mode == "batched", node)
		})
	}
}

// checkEvent reads the event as the callback does.
func checkEvent(t *testing.T, request *http.Request, batched bool, node string) {
	t.Helper()
	var e *cloudevents.Event
	var err error
	if batched {
		all, batchErr := cehttp.NewEventsFromHTTPRequest(request)
		if batchErr != nil || len(all) != 1 {
			t.Fatal(len(all), batchErr)
		}
		e = &all[0]
	} else if e, err = cehttp.NewEventFromHTTPRequest(request); err != nil {
		t.Fatal(err)
	}
	if e.ID() != node+"/PRE/fail" || e.Subject() != node {
		t.Errorf("%s", e)
	}
	got, err := events.ParseExternalVerdict(*e)
	if err != nil {
		t.Fatal(err)
	}
	want := events.ExternalVerdict{
		BizExecOrderID: "o", NodeID: node, Stage: v1alpha1.StagePre, Verdict: "fail", Message: "find error",
		PodResults: []v1alpha1.PodSummary{
			{Pod: "a", Verdict: "fail", Message: "find error"}, {Pod: "b", Verdict: "fail", Message: "find error"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
