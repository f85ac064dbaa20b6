package chaos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

func TestEvidenceHasTheVerdictsOfTheStage(t *testing.T) {
	const empty, ruled = `{"callbackRequest":{"verdict":{"rules":[]}}}`, `{"callbackRequest":{"verdict":{"rules":[{}]}}}`
	callback := func(c double.CallbackEntry) double.CallbackEntry {
		if c.Node == "" {
			c.Node, c.Stage = "n", double.Post
		}
		if c.As == "" {
			c.As = "json"
		}
		return c
	}
	e := Evidence{Nodes: []double.Node{
		{ID: "other", Passed: map[double.Stage]bool{double.Pre: true}},
		{ID: "n", Passed: map[double.Stage]bool{double.Post: true}},
	}}
	for _, c := range []double.CallbackEntry{
		{Verdict: "pass", Body: ruled, Status: 200},
		{Verdict: "pass", Body: empty, Status: 200},
		{Verdict: "pass", As: "binary", Body: `{}`, Status: 200},
		{Verdict: "unpass", Body: ruled, Status: 0},
		{Verdict: "xyz", Body: ruled, Status: 503},
		{Verdict: "fail", Body: ruled, Status: 401},
		{Verdict: "fail", Body: ruled, Status: 200, Node: "other", Stage: double.Post},
		{Verdict: "fail", Body: ruled, Status: 200, Node: "n", Stage: double.Pre},
	} {
		e.Log.Callbacks = append(e.Log.Callbacks, callback(c))
	}
	want := Stage{Passed: true, Verdicts: []Verdict{
		{Outcome: pass, Accepted: true},
		{Outcome: pass, Accepted: true, WithoutRules: true},
		{Outcome: pass, Accepted: true},
		{Outcome: fail},
		{Outcome: none},
	}}
	if diff := cmp.Diff(want, e.Stage([]string{"n"}, double.Post)); diff != "" {
		t.Error("(-want +got)", diff)
	}
	if got := e.Stage([]string{"n"}, double.Pre); got.Passed || len(got.Verdicts) != 1 {
		t.Errorf("PRE is %+v", got)
	}
	if got := e.Stage([]string{"n", "other"}, double.Pre); !got.Passed || len(got.Verdicts) != 1 {
		t.Errorf("PRE of both nodes is %+v", got)
	}
}

func TestEvidenceCountsTheCallsOfABatch(t *testing.T) {
	call := func(action, node, body string) double.CallEntry {
		return double.CallEntry{Action: action, Node: node, Body: json.RawMessage(body)}
	}
	e := Evidence{Log: double.Log{Calls: []double.CallEntry{
		call("submitChangeExecOrder", "", `{}`),
		call("submitChangeExecBatchStartNotify", "n0", `{"batchNo":0}`),
		call("submitChangeExecBatchStartNotify", "n1", `{"batchNo":1}`),
		call("submitChangeExecBatchStartNotify", "", `{"batchNo":1}`),
		call("submitChangeFinishNotify", "n1", `{}`),
	}}}
	if first, second, third := e.Starts(0), e.Starts(1), e.Starts(2); first != 1 || second != 2 || third != 0 {
		t.Errorf("starts are %d, %d and %d, want 1, 2 and 0", first, second, third)
	}
	if none, one := e.Finishes([]string{"n0"}), e.Finishes([]string{"n1", "n0"}); none != 0 || one != 1 {
		t.Errorf("finishes are %d and %d, want 0 and 1", none, one)
	}
}

func TestAVerdictOfAnUnknownNodeMayStayInTheInboxForATime(t *testing.T) {
	now := time.Now()
	entry := func(node string, age time.Duration) v1alpha1.InboxVerdict {
		return v1alpha1.InboxVerdict{NodeID: node, Time: metav1.NewMicroTime(now.Add(-age))}
	}
	known := map[string]bool{"n": true}
	for name, tc := range map[string]struct {
		inbox []v1alpha1.InboxVerdict
		want  int
	}{
		"none":                    {nil, 0},
		"known":                   {[]v1alpha1.InboxVerdict{entry("n", 0)}, 1},
		"unknown":                 {[]v1alpha1.InboxVerdict{entry("other", time.Minute)}, 0},
		"unknown for a long time": {[]v1alpha1.InboxVerdict{entry("other", 4*time.Minute)}, 1},
	} {
		if got := Stuck(tc.inbox, known, now); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
