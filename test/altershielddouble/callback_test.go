package altershielddouble

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
	defaultRule := func(verdict string) []Rule {
		return []Rule{{
			ExternalRuleID: "double-1", ControlKey: "double", Status: "SUCCESS", Verdict: verdict, Msg: "as scripted",
			Stage: Pre, RiskLevel: "HIGH", Name: "double", Owner: "double",
		}}
	}
	sent := func(name string, pass bool, rules []Rule) verdict {
		return verdict{AllFinish: true, CheckPass: pass, Rules: rules, Verdict: name}
	}
	for name, tc := range map[string]struct {
		behaviour string
		start     map[string]any
		want      verdict
		state     State
	}{
		"pass":                    {`{}`, nil, sent("pass", true, defaultRule("PASS")), PreFinish},
		"fail with rules":         {`{"verdict":"fail","rules":[{"name":"r","verdict":"FAIL"}]}`, nil, sent("fail", false, []Rule{{Name: "r", Verdict: "FAIL"}}), PreFinish},
		"fail":                    {`{"verdict":"fail"}`, nil, sent("fail", false, defaultRule("FAIL")), PreFinish},
		"inconc":                  {`{"verdict":"inconc"}`, nil, sent("inconc", false, defaultRule("INCONC")), PreFinish},
		"none":                    {`{"verdict":"none"}`, nil, sent("none", false, defaultRule("NONE")), PreFinish},
		"an unknown verdict":      {`{"verdict":"xyz"}`, nil, sent("xyz", false, defaultRule("XYZ")), PreFinish},
		"a timeout is a pass":     {`{"ending":"timeout","verdict":"fail"}`, nil, sent("pass", true, []Rule{}), PreTimeout},
		"an exception is a pass":  {`{"ending":"exception"}`, nil, sent("pass", true, []Rule{}), PreFail},
		"judged without rules":    {`{"noRules":true}`, nil, sent("pass", true, []Rule{}), PreFinish},
		"an emergency":            {`{"emergency":true,"noRules":true}`, nil, verdict{AllFinish: true, CheckPass: true, Emergency: true, Rules: []Rule{}, Verdict: "pass"}, PreFinish},
		"an emergency of a start": {`{"noRules":true}`, map[string]any{"emergency": true}, verdict{AllFinish: true, CheckPass: true, Emergency: true, Rules: []Rule{}, Verdict: "pass"}, PreFinish},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.setScript(t, `{"default":`+tc.behaviour+`}`)
			f.call(t, actionOpenOrder, orderBody(nil))
			node := f.call(t, actionStartBatch, batch(tc.start)).node()
			f.idle(t)
			want := []callbackBody{{ChangeCheckType: "CHANGE_BATCH", CallbackRequest: callbackRequest{
				BizExecOrderID: "o", ChangeSceneKey: "scene", DefenseStageEnum: Pre, NodeID: node, Verdict: tc.want,
			}}}
			if diff := cmp.Diff(want, f.bodies(t)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if got := f.state(node); got != tc.state {
				t.Errorf("state %s, want %s", got, tc.state)
			}
		})
	}
}

func TestACallbackIsSignedAndHasTheServersContentType(t *testing.T) {
	f := newFixture(t, nil)
	f.started(t)
	f.idle(t)
	r := f.received[0]
	if got := r.header.Get("Content-Type"); got != "application/json;UTF-8" {
		t.Error(got)
	}
	if r.header.Get("X-AlterShield-Platform") != "breakwater" || r.header.Get("X-AlterShield-Timestamp") != "1700000000000" ||
		r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), f.token) {
		t.Errorf("%v", r.header)
	}
}

func TestEachFaultOfACallbackCanBeScripted(t *testing.T) {
	for name, tc := range map[string]struct {
		behaviour string
		has       func(*fixture, string) bool
	}{
		"a bad signature": {`{"badSignature":true}`, func(f *fixture, _ string) bool {
			r := f.received[0]
			return r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), f.token)
		}},
		"an old timestamp, signed": {`{"skew":"-10m"}`, func(f *fixture, _ string) bool {
			r := f.received[0]
			return r.header.Get("X-AlterShield-Timestamp") == "1699999400000" && r.header.Get("X-AlterShield-Sign") == sign("1699999400000", string(r.body), f.token)
		}},
		"an unknown node": {`{"unknownNode":true}`, func(f *fixture, node string) bool {
			return bytes.Contains(f.received[0].body, []byte(`"nodeId":"unknown-`+node))
		}},
		"another check type": {`{"checkType":"CHANGE_ACTION"}`, func(f *fixture, _ string) bool {
			return bytes.Contains(f.received[0].body, []byte(`"changeCheckType":"CHANGE_ACTION"`))
		}},
		"another body": {`{"badBody":"{]"}`, func(f *fixture, _ string) bool { return string(f.received[0].body) == "{]" }},
	} {
		f := newFixture(t, nil)
		f.setScript(t, `{"default":`+tc.behaviour+`}`)
		node := f.started(t)
		f.idle(t)
		if len(f.received) != 1 || !tc.has(f, node) {
			t.Errorf("%s: %+v", name, f.received)
		}
	}
}

func TestABehaviourWithoutACallbackSendsNone(t *testing.T) {
	for behaviour, state := range map[string]State{
		`{"never":true}`: PreRuns, `{"lost":true}`: PreFinish, `{"skipCheck":true}`: PreSubmit, `{"forgotten":true}`: PreSubmit,
	} {
		f := newFixture(t, nil)
		f.setScript(t, `{"default":`+behaviour+`}`)
		node := f.started(t)
		f.idle(t)
		if len(f.received) != 0 || f.state(node) != state {
			t.Errorf("%s: %d callbacks, state %s", behaviour, len(f.received), f.state(node))
		}
	}
}

func TestTheCallbackOfAnOrderNodeHasItsCheckType(t *testing.T) {
	f := newFixture(t, nil)
	f.call(t, actionOpenOrder, orderBody(nil))
	f.call(t, actionStartOrder, batch(nil))
	f.idle(t)
	if got := f.bodies(t)[0].ChangeCheckType; got != "CHANGE_ORDER" {
		t.Error(got)
	}
}

func TestAnEarlyCallbackComesBeforeTheAnswer(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"default":{"early":true,"copies":2}}`)
	f.started(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.received) != 2 {
		t.Errorf("%d callbacks arrived before the answer, want 2", len(f.received))
	}
}

func TestCallbacksComeLateTwiceAndOutOfOrder(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"checks":[{"match":{"stage":"PRE"},"then":{"delay":"1s","lag":"1s","copies":2,"copyEvery":"10s"}}]}`)
	node := f.started(t)
	f.step(t, time.Second)
	f.step(t, 0) // the check has ended and its callback waits for the lag
	if len(f.received) != 0 || f.state(node) != PreFinish {
		t.Errorf("%d callbacks, state %s", len(f.received), f.state(node))
	}
	f.step(t, time.Second)
	f.await(t)
	f.call(t, actionFinish, nodeBody(node, nil))
	f.await(t)
	f.step(t, 10*time.Second)
	f.await(t)
	var stages []Stage
	for _, body := range f.bodies(t) {
		stages = append(stages, body.CallbackRequest.DefenseStageEnum)
	}
	if diff := cmp.Diff([]Stage{Pre, Post, Pre}, stages); diff != "" {
		t.Error(diff)
	}
}

func TestACheckOverItsTimeoutIsCalledBackAsAPassAndJudgedLater(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.CheckTimeout = time.Minute })
	f.setScript(t, `{"checkTimeout":"3s","default":{"delay":"10s"}}`)
	node := f.started(t)
	f.step(t, 3*time.Second)
	f.await(t)
	if got := f.bodies(t)[0].CallbackRequest.Verdict; got.Verdict != "pass" || len(got.Rules) != 0 || f.state(node) != PreTimeout {
		t.Errorf("%+v, %s", got, f.state(node))
	}
	f.step(t, 7*time.Second)
	f.idle(t)
	if got := f.Nodes()[0]; got.State != PreTimeout || !got.Passed[Pre] || len(f.bodies(t)) != 1 {
		t.Errorf("%+v, %d callbacks", got, len(f.bodies(t)))
	}
}

func TestVerdictsAsCloudEvents(t *testing.T) {
	for _, mode := range []string{"binary", "structured", "batched"} {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, nil)
			f.setScript(t, `{"default":{"as":"`+mode+`","verdict":"fail","message":"find error"}}`)
			f.call(t, actionOpenOrder, orderBody(nil))
			node := f.call(t, actionStartBatch, batch(map[string]any{"extInfo": map[string]any{"pods": []string{"a", "b"}}})).node()
			f.idle(t)
			r := f.received[0]
			if r.header.Get("X-AlterShield-Sign") != sign("1700000000000", string(r.body), f.token) {
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
