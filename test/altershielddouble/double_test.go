package altershielddouble

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestACallIsCheckedInTheOrderBodySignatureLogic(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Scene = "scene" })
	bad := batch(map[string]any{"batchNo": nil, "changeSceneKey": "other"})
	for name, tc := range map[string]struct {
		action, platform, token, timestamp string
		body                               []byte
		status                             int
		code                               string
	}{
		"an unknown action":                {"resubmit", "breakwater", "token", "1", batch(nil), 404, ""},
		"a body that cannot be read":       {actionStartBatch, "other", "other", "x", []byte(`{`), 400, ""},
		"a body with violations":           {actionStartBatch, "other", "other", "x", bad, 200, "101"},
		"an unknown platform":              {actionStartBatch, "other", "token", "1", batch(nil), 200, "102"},
		"another token":                    {actionStartBatch, "breakwater", "other", "1", batch(nil), 200, "102"},
		"a timestamp that is not a number": {actionStartBatch, "breakwater", "token", "x", batch(nil), 200, "102"},
		"an old timestamp":                 {actionStartBatch, "breakwater", "token", "1", batch(nil), 200, "101"},
		"an unknown scene":                 {actionOpenOrder, "breakwater", "token", "1", orderBody(map[string]any{"changeSceneKey": "other"}), 200, "101"},
		"a body with line ends":            {actionOpenOrder, "breakwater", "token", "1", append(orderBody(map[string]any{"bizExecOrderId": "lines"}), "\r\n"...), 200, "000"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.callAs(t, tc.action, tc.body, tc.platform, tc.token, tc.timestamp)
			if got.status != tc.status || got.code() != tc.code {
				t.Errorf("got %d %s", got.status, got.raw)
			}
		})
	}
}

func TestSkipAcceptsAnySignature(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Signature = Skip })
	if got := f.callAs(t, actionOpenOrder, orderBody(nil), "", "", ""); got.code() != "000" {
		t.Error(got.raw)
	}
}

func TestTheEnvelopeIncludesNulls(t *testing.T) {
	f := newFixture(t, nil)
	got := f.call(t, actionFinishOrder, nodeBody("n", nil))
	if want := `{"success":false,"resultCode":"101","msg":"changeOrder not found, bizExecOrderId=o","domain":null}`; got.raw != want {
		t.Errorf("got %s", got.raw)
	}
	f.call(t, actionOpenOrder, orderBody(nil))
	if got, want := f.call(t, actionStartBatch, batch(nil)).raw, `"msg":null`; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestOrders(t *testing.T) {
	f := newFixture(t, nil)
	for _, tc := range []struct {
		action string
		body   []byte
		code   string
	}{
		{actionStartBatch, batch(nil), "101"}, // no order yet
		{actionStartOrder, batch(nil), "101"},
		{actionOpenOrder, orderBody(map[string]any{"creator": strings.Repeat("c", 57)}), "901"},
		{actionOpenOrder, orderBody(map[string]any{"creator": strings.Repeat("c", 56)}), "000"},
		{actionOpenOrder, orderBody(nil), "106"},
		{actionOpenOrder, orderBody(map[string]any{"platform": "other"}), "000"}, // unique by platform
		{actionEvent, orderBody(nil), "000"},                                     // does nothing
		{actionEvent, orderBody(map[string]any{"bizExecOrderId": "event"}), ""},
		{actionSyncStart, orderBody(nil), "103"},
		{actionFinishOrder, nodeBody("", map[string]any{"finishState": "CANCEL"}), "000"},
	} {
		if got := f.call(t, tc.action, tc.body); got.code() != tc.code {
			t.Errorf("%s: got %s, want %s", tc.action, got.raw, tc.code)
		}
	}
	var states []string
	for _, o := range f.Orders() {
		states = append(states, o.Order+" "+o.Platform+" "+o.State)
	}
	if diff := cmp.Diff([]string{"event breakwater SUCCESS", "o breakwater CANCEL", "o other INIT"}, states); diff != "" {
		t.Error(diff)
	}
}

func TestEveryStartCreatesANewNode(t *testing.T) {
	f := newFixture(t, nil)
	if a, c := f.started(t), f.started(t); a == c {
		t.Errorf("both are %s", a)
	}
	f.idle(t)
	if got := len(f.bodies(t)); got != 2 {
		t.Errorf("%d callbacks", got)
	}
}

func TestTheStatesOfANodeFromStartToEnd(t *testing.T) {
	f := newFixture(t, nil)
	f.setScript(t, `{"default":{"delay":"1s"}}`)
	node := f.started(t)
	finish := func() answer { return f.call(t, actionFinish, nodeBody(node, nil)) }
	retrieve := func(stage Stage) any {
		a := f.call(t, actionRetrieve, nodeBody(node, map[string]any{"defenseStage": stage}))
		verdict, _ := a.result.Domain["verdict"].(map[string]any)
		if a.result.Domain["finished"] != true {
			t.Errorf("retrieve returns not finished: %s", a.raw)
		}
		return verdict["verdict"]
	}
	if got := finish(); got.code() != "103" || !strings.HasPrefix(*got.result.Msg, "402:unsupported operation in PRE_AOP") {
		t.Error(got.raw)
	}
	if got := retrieve(Pre); got != "fail" {
		t.Errorf("while PRE runs: %s", got)
	}
	f.step(t, time.Second)
	f.await(t)
	f.idle(t)
	if pre, post := retrieve(Pre), retrieve(Post); pre != "pass" || post != "fail" {
		t.Errorf("after PRE: %s, %s", pre, post)
	}
	if got := finish(); got.code() != "000" || got.result.Domain["skipCheck"] != true {
		t.Error(got.raw)
	}
	if got := finish(); got.code() != "103" { // the check runs
		t.Error(got.raw)
	}
	f.step(t, time.Second)
	f.await(t)
	f.idle(t)
	if got := finish(); got.code() != "000" || f.state(node) != PostSubmit {
		t.Errorf("a finish after the end: %s", got.raw)
	}
	f.idle(t)
	if got := len(f.bodies(t)); got != 2 {
		t.Errorf("%d callbacks: the finish without a check was called back", got)
	}
	if got := retrieve(Post); got != "pass" {
		t.Errorf("after a finish without a check: %s", got)
	}
	if got := finish(); got.code() != "103" {
		t.Error(got.raw)
	}
}

func TestAFinishNeedsANodeAndATime(t *testing.T) {
	f := newFixture(t, nil)
	node := f.started(t)
	f.idle(t)
	if got := f.call(t, actionFinish, nodeBody("none", nil)); got.code() != "103" || *got.result.Msg != "node not found, nodeId:none" {
		t.Error(got.raw)
	}
	if got := f.call(t, actionFinish, nodeBody(node, map[string]any{"finishTime": nil})); got.code() != "901" {
		t.Error(got.raw)
	}
	if got := f.call(t, actionRetrieve, nodeBody("none", nil)); got.code() != "103" {
		t.Error(got.raw)
	}
}

func TestLocationsOfAFinishReplaceThoseOfTheStart(t *testing.T) {
	f := newFixture(t, nil)
	node := f.started(t)
	f.idle(t)
	f.call(t, actionFinish, nodeBody(node, map[string]any{"effectiveTargetLocations": []string{"q", "r"}}))
	f.idle(t)
	if diff := cmp.Diff([]string{"q", "r"}, f.Nodes()[0].Locations); diff != "" {
		t.Error(diff)
	}
}

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fault     string
		status    int
		code      string
		contains  string
		committed bool
	}{
		"901":                {`{"fault":"901"}`, 200, "901", `"domain":null`, false},
		"901 after commit":   {`{"fault":"901","after":true}`, 200, "901", "", true},
		"404":                {`{"fault":"404"}`, 404, "", "Not Found", false},
		"500":                {`{"fault":"500"}`, 500, "", "Internal Server Error", false},
		"502":                {`{"fault":"502"}`, 502, "", "<html>", false},
		"garbage":            {`{"fault":"garbage"}`, 200, "", "<html>", false},
		"reset":              {`{"fault":"reset"}`, 0, "", "", false},
		"reset after commit": {`{"fault":"reset","after":true}`, 0, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.setScript(t, `{"faults":[`+tc.fault+`]}`)
			got := f.call(t, actionOpenOrder, orderBody(nil))
			if got.status != tc.status || got.code() != tc.code || !strings.Contains(got.raw, tc.contains) {
				t.Errorf("got %d %s", got.status, got.raw)
			}
			if committed := len(f.Orders()) == 1; committed != tc.committed {
				t.Errorf("committed: %v", committed)
			}
		})
	}
}

func TestASlowCallIsExecutedAfterOrBeforeTheDelay(t *testing.T) {
	for _, after := range []bool{false, true} {
		f := newFixture(t, nil)
		f.setScript(t, `{"faults":[{"fault":"slow","delay":"3s","after":`+strconv.FormatBool(after)+`}]}`)
		done := make(chan answer)
		go func() { done <- f.call(t, actionOpenOrder, orderBody(nil)) }()
		f.step(t, 0)
		if got := len(f.Orders()) == 1; got != after {
			t.Errorf("after %v: done before the delay: %v", after, got)
		}
		f.step(t, 3*time.Second)
		if got := <-done; got.code() != "000" {
			t.Error(got.raw)
		}
	}
}

func TestAStartWithALostAnswerIsCalledBack(t *testing.T) {
	f := newFixture(t, nil)
	f.call(t, actionOpenOrder, orderBody(nil))
	f.setScript(t, `{"faults":[{"fault":"reset","after":true}]}`)
	f.call(t, actionStartBatch, batch(nil))
	f.await(t)
}

func TestTheRulesHaveTheInputOfTheServersRules(t *testing.T) {
	var seen []RuleInput
	f := newFixture(t, func(o *Options) {
		o.Rules = func(in RuleInput) []Rule {
			seen = append(seen, in)
			return []Rule{{Name: "r", Verdict: map[Stage]string{Pre: "PASS", Post: "FAIL"}[in.Stage]}}
		}
	})
	f.call(t, actionOpenOrder, orderBody(map[string]any{"changeApps": []string{"app"}}))
	node := f.call(t, actionStartBatch, batch(map[string]any{"batchNo": 1, "startTime": 5, "extInfo": map[string]any{"revision": "x"}})).node()
	f.idle(t)
	f.call(t, actionFinish, nodeBody(node, map[string]any{"finishTime": 7}))
	f.idle(t)
	want := RuleInput{
		Stage: Post, Apps: []string{"app"}, StartTime: time.UnixMilli(5), FinishTime: time.UnixMilli(7),
		BatchNo: 1, TotalBatchNum: 3, TotalBatchNumInChangePhase: 3, ExtInfo: map[string]any{"revision": "x"},
	}
	if diff := cmp.Diff(want, seen[1]); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	got := f.bodies(t)
	if got[0].CallbackRequest.Verdict.Verdict != "pass" || got[1].CallbackRequest.Verdict.Verdict != "fail" || got[1].CallbackRequest.Verdict.Rules[0].Name != "r" {
		t.Errorf("%+v", got)
	}
}
