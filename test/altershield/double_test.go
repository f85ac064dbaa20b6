package altershield

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBodyThenSignatureThenLogic(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Scene = "scene" })
	bad := batch(map[string]any{"batchNo": nil, "changeSceneKey": "other"})
	for name, tc := range map[string]struct {
		action, platform, token, timestamp string
		body                               []byte
		status                             int
		code                               string
	}{
		"an unknown action":             {"resubmit", "breakwater", "token", "1", batch(nil), 404, ""},
		"a body that cannot be read":    {actionStartBatch, "other", "other", "x", []byte(`{`), 400, ""},
		"a body that is wrong":          {actionStartBatch, "other", "other", "x", bad, 200, "101"},
		"an unknown platform":           {actionStartBatch, "other", "token", "1", batch(nil), 200, "102"},
		"another token":                 {actionStartBatch, "breakwater", "other", "1", batch(nil), 200, "102"},
		"a timestamp that is no number": {actionStartBatch, "breakwater", "token", "x", batch(nil), 200, "102"},
		"a timestamp of long ago":       {actionStartBatch, "breakwater", "token", "1", batch(nil), 200, "101"},
		"an unknown scene":              {actionOpenOrder, "breakwater", "token", "1", orderBody(map[string]any{"changeSceneKey": "other"}), 200, "101"},
		"a body with line ends":         {actionOpenOrder, "breakwater", "token", "1", append(orderBody(map[string]any{"bizExecOrderId": "lines"}), "\r\n"...), 200, "000"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.callAs(t, tc.action, tc.body, tc.platform, tc.token, tc.timestamp)
			if got.status != tc.status || got.code() != tc.code {
				t.Errorf("got %d %s", got.status, got.raw)
			}
		})
	}
}

func TestSkipAcceptsAnySignature(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Signature = Skip })
	if got := b.callAs(t, actionOpenOrder, orderBody(nil), "", "", ""); got.code() != "000" {
		t.Error(got.raw)
	}
}

func TestTheEnvelopeIncludesNulls(t *testing.T) {
	b := newBench(t, nil)
	got := b.call(t, actionFinishOrder, nodeBody("n", nil))
	if want := `{"success":false,"resultCode":"101","msg":"changeOrder not found, bizExecOrderId=o","domain":null}`; got.raw != want {
		t.Errorf("got %s", got.raw)
	}
	b.call(t, actionOpenOrder, orderBody(nil))
	if got, want := b.call(t, actionStartBatch, batch(nil)).raw, `"msg":null`; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestOrders(t *testing.T) {
	b := newBench(t, nil)
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
		if got := b.call(t, tc.action, tc.body); got.code() != tc.code {
			t.Errorf("%s: got %s, want %s", tc.action, got.raw, tc.code)
		}
	}
	var states []string
	for _, o := range b.Orders() {
		states = append(states, o.Order+" "+o.Platform+" "+o.State)
	}
	if diff := cmp.Diff([]string{"event breakwater SUCCESS", "o breakwater CANCEL", "o other INIT"}, states); diff != "" {
		t.Error(diff)
	}
}

func TestEveryStartCreatesANewNode(t *testing.T) {
	b := newBench(t, nil)
	if a, c := b.started(t), b.started(t); a == c {
		t.Errorf("both are %s", a)
	}
	b.idle(t)
	if got := len(b.bodies(t)); got != 2 {
		t.Errorf("%d callbacks", got)
	}
}

func TestANodeFromStartToItsEnd(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, `{"default":{"delay":"1s"}}`)
	node := b.started(t)
	finish := func() answer { return b.call(t, actionFinish, nodeBody(node, nil)) }
	retrieve := func(stage Stage) any {
		a := b.call(t, actionRetrieve, nodeBody(node, map[string]any{"defenseStage": stage}))
		said, _ := a.result.Domain["verdict"].(map[string]any)
		if a.result.Domain["finished"] != true {
			t.Errorf("retrieve returns not finished: %s", a.raw)
		}
		return said["verdict"]
	}
	if got := finish(); got.code() != "103" || !strings.HasPrefix(*got.result.Msg, "402:unsupported operation in PRE_AOP_SUBMIT") {
		t.Error(got.raw)
	}
	if got := retrieve(Pre); got != "fail" {
		t.Errorf("while PRE runs: %s", got)
	}
	b.step(t, time.Second)
	b.await(t)
	b.idle(t)
	if pre, post := retrieve(Pre), retrieve(Post); pre != "pass" || post != "fail" {
		t.Errorf("after PRE: %s, %s", pre, post)
	}
	if got := finish(); got.code() != "000" || got.result.Domain["skipCheck"] != true {
		t.Error(got.raw)
	}
	if got := finish(); got.code() != "103" { // the check runs
		t.Error(got.raw)
	}
	b.step(t, time.Second)
	b.await(t)
	b.idle(t)
	if got := finish(); got.code() != "000" || b.state(node) != PostSubmit {
		t.Errorf("a finish after the end: %s", got.raw)
	}
	b.idle(t)
	if got := len(b.bodies(t)); got != 2 {
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
	b := newBench(t, nil)
	node := b.started(t)
	b.idle(t)
	if got := b.call(t, actionFinish, nodeBody("none", nil)); got.code() != "103" || *got.result.Msg != "node not found, nodeId:none" {
		t.Error(got.raw)
	}
	if got := b.call(t, actionFinish, nodeBody(node, map[string]any{"finishTime": nil})); got.code() != "901" {
		t.Error(got.raw)
	}
	if got := b.call(t, actionRetrieve, nodeBody("none", nil)); got.code() != "103" {
		t.Error(got.raw)
	}
}

func TestLocationsOfAFinishReplaceThoseOfTheStart(t *testing.T) {
	b := newBench(t, nil)
	node := b.started(t)
	b.idle(t)
	b.call(t, actionFinish, nodeBody(node, map[string]any{"effectiveTargetLocations": []string{"q", "r"}}))
	b.idle(t)
	if diff := cmp.Diff([]string{"q", "r"}, b.Nodes()[0].Locations); diff != "" {
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
			b := newBench(t, nil)
			b.put(t, `{"faults":[`+tc.fault+`]}`)
			got := b.call(t, actionOpenOrder, orderBody(nil))
			if got.status != tc.status || got.code() != tc.code || !strings.Contains(got.raw, tc.contains) {
				t.Errorf("got %d %s", got.status, got.raw)
			}
			if committed := len(b.Orders()) == 1; committed != tc.committed {
				t.Errorf("committed: %v", committed)
			}
		})
	}
}

func TestASlowCallIsExecutedAfterOrBeforeTheDelay(t *testing.T) {
	for _, after := range []bool{false, true} {
		b := newBench(t, nil)
		b.put(t, `{"faults":[{"fault":"slow","delay":"3s","after":`+strconv.FormatBool(after)+`}]}`)
		done := make(chan answer)
		go func() { done <- b.call(t, actionOpenOrder, orderBody(nil)) }()
		b.step(t, 0)
		if got := len(b.Orders()) == 1; got != after {
			t.Errorf("after %v: done before the delay: %v", after, got)
		}
		b.step(t, 3*time.Second)
		if got := <-done; got.code() != "000" {
			t.Error(got.raw)
		}
	}
}

func TestAStartWithALostAnswerIsCalledBack(t *testing.T) {
	b := newBench(t, nil)
	b.call(t, actionOpenOrder, orderBody(nil))
	b.put(t, `{"faults":[{"fault":"reset","after":true}]}`)
	b.call(t, actionStartBatch, batch(nil))
	b.await(t)
}

func TestTheRulesHaveTheInputOfTheServersRules(t *testing.T) {
	var seen []RuleInput
	b := newBench(t, func(o *Options) {
		o.Rules = func(in RuleInput) []Rule {
			seen = append(seen, in)
			return []Rule{{Name: "r", Verdict: map[Stage]string{Pre: "PASS", Post: "FAIL"}[in.Stage]}}
		}
	})
	b.call(t, actionOpenOrder, orderBody(map[string]any{"changeApps": []string{"app"}}))
	node := b.call(t, actionStartBatch, batch(map[string]any{"batchNo": 1, "startTime": 5, "extInfo": map[string]any{"revision": "x"}})).node()
	b.idle(t)
	b.call(t, actionFinish, nodeBody(node, map[string]any{"finishTime": 7}))
	b.idle(t)
	want := RuleInput{
		Stage: Post, Apps: []string{"app"}, StartTime: time.UnixMilli(5), FinishTime: time.UnixMilli(7),
		BatchNo: 1, TotalBatchNum: 3, TotalBatchNumInChangePhase: 3, ExtInfo: map[string]any{"revision": "x"},
	}
	if diff := cmp.Diff(want, seen[1]); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	got := b.bodies(t)
	if got[0].CallbackRequest.Verdict.Verdict != "pass" || got[1].CallbackRequest.Verdict.Verdict != "fail" || got[1].CallbackRequest.Verdict.Rules[0].Name != "r" {
		t.Errorf("%+v", got)
	}
}
