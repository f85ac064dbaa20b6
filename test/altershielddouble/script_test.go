package altershielddouble

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnInvalidScriptIsRejected(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"not JSON":             {`{`, "parse script"},
		"an unknown field":     {`{"default":{"verdikt":"fail"}}`, "verdikt"},
		"an unknown ending":    {`{"default":{"ending":"maybe"}}`, "default: ending"},
		"an unknown mode":      {`{"checks":[{"then":{"as":"xml"}}]}`, "checks[0]: as"},
		"an unknown stage":     {`{"checks":[{"match":{"stage":"post"}}]}`, "checks[0].match.stage"},
		"an unknown step":      {`{"checks":[{"match":{"step":"ACTION"}}]}`, "checks[0].match.step"},
		"a broken pattern":     {`{"checks":[{"match":{"pod":"["}}]}`, "checks[0].match.pod"},
		"an unknown fault":     {`{"faults":[{"fault":"503"}]}`, "faults[0].fault"},
		"slow without delay":   {`{"faults":[{"fault":"slow"}]}`, "faults[0].delay"},
		"a negative count":     {`{"checks":[{"nth":-1}]}`, "checks[0]: nth"},
		"a negative fault":     {`{"faults":[{"fault":"901","times":-1}]}`, "faults[0]: nth"},
		"negative copies":      {`{"default":{"copies":-1}}`, "default: copies"},
		"a duration as number": {`{"default":{"delay":2}}`, "parse script"},
		"a rate in per cent":   {`{"checks":[{"rate":5}]}`, "checks[0]: rate"},
		"a negative rate":      {`{"secondFinish":-0.1}`, "secondFinish"},
	} {
		if _, err := ParseScript([]byte(tc.script)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMatch(t *testing.T) {
	two := int64(2)
	f := facts{Stage: Post, Step: stepBatch, BatchNo: 2, Pods: []string{"sleep-a", "sleep-b"}, Order: "one/default/sleep/1", Namespace: "default", Workload: "sleep"}
	order := facts{Stage: Post, Step: stepOrder}
	for name, tc := range map[string]struct {
		match Match
		facts facts
		want  bool
	}{
		"an empty match means all":     {Match{}, f, true},
		"the stage":                    {Match{Stage: Post}, f, true},
		"another stage":                {Match{Stage: Pre}, f, false},
		"the batch":                    {Match{BatchNo: &two}, f, true},
		"an order has no batch number": {Match{BatchNo: new(int64)}, order, false},
		"one of the pods":              {Match{Pod: "sleep-b"}, f, true},
		"a pattern":                    {Match{Pod: "sleep-*"}, f, true},
		"another pod":                  {Match{Pod: "sleep"}, f, false},
		"a part of the order":          {Match{Order: "default/sleep"}, f, true},
		"another order":                {Match{Order: "other"}, f, false},
		"the namespace":                {Match{Namespace: "default", Workload: "sleep"}, f, true},
		"another namespace":            {Match{Namespace: "kube-system"}, f, false},
		"another workload":             {Match{Workload: "slee"}, f, false},
		"the step":                     {Match{Step: stepOrder}, order, true},
		"all must fit":                 {Match{Stage: Post, Pod: "x"}, f, false},
	} {
		if got := tc.match.matches(tc.facts); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestNthAndTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		nth, times int
		want       []bool // of the first five matches
	}{
		"always":             {0, 0, []bool{true, true, true, true, true}},
		"the first two":      {0, 2, []bool{true, true, false, false, false}},
		"the third":          {3, 0, []bool{false, false, true, false, false}},
		"two from the third": {3, 2, []bool{false, false, true, true, false}},
	} {
		var got []bool
		for seen := 1; seen <= 5; seen++ {
			got = append(got, applies(seen, tc.nth, tc.times))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheFirstRuleThatAppliesDecidesAndAllRulesCount(t *testing.T) {
	s, err := ParseScript([]byte(`{"default":{"verdict":"default"},"checks":[
		{"match":{"stage":"PRE"},"times":1,"then":{"verdict":"first"}},
		{"match":{"stage":"PRE"},"nth":2,"then":{"verdict":"second"}},
		{"match":{"stage":"POST"},"then":{"verdict":"post"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := newProgress(s)
	var got []string
	for _, stage := range []Stage{Pre, Pre, Pre, Post} {
		got = append(got, s.behaviour(p, facts{Stage: stage}).Verdict)
	}
	if diff := cmp.Diff([]string{"first", "second", "default", "post"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsMatchActionAndOrder(t *testing.T) {
	s, err := ParseScript([]byte(`{"faults":[{"action":"retrieveChangeCheck","order":"sleep","times":1,"fault":"901"},{"fault":"404","nth":3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := newProgress(s)
	var got []Fault
	for _, call := range [][2]string{
		{"retrieveChangeCheck", `{"bizExecOrderId":"other"}`}, {"retrieveChangeCheck", `{"bizExecOrderId":"sleep"}`},
		{"submitChangeExecOrder", `{"bizExecOrderId":"sleep"}`}, {"retrieveChangeCheck", `{"bizExecOrderId":"sleep"}`},
	} {
		fault := s.fault(p, call[0], []byte(call[1]))
		if fault == nil {
			fault = &FaultRule{}
		}
		got = append(got, fault.Fault)
	}
	if diff := cmp.Diff([]Fault{"", Fault901, Fault404, ""}, got); diff != "" {
		t.Error(diff)
	}
}
