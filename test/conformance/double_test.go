package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	pass = v1alpha1.OutcomePass
	fail = v1alpha1.OutcomeFail
	none = v1alpha1.OutcomeNoVerdict
)

// Statements that several scripts make false.
const (
	called            = "a callback has the order, node and stage of a call"
	checked           = "a callback has the check type of its node"
	envelopes         = "every call is answered with HTTP 200 and the envelope"
	meaning           = "a verdict has a known value"
	readable          = "a callback can be parsed"
	retrieves         = "retrieve agrees with the callbacks"
	signed            = "a callback is signed with the platform's token"
	timely            = "a callback's timestamp is the time of sending"
	passesConfirmedIs = "a pass has rules or is confirmed by retrieve"
)

var (
	starts      = []string{"the start of an order is answered with a node and followed by a callback", "the start of a batch is answered with a node and followed by a callback"}
	finishes    = []string{"the finish of a batch is accepted and followed by a callback", "the finish of an order is accepted and followed by a callback"}
	noCallbacks = slices.Concat(starts, finishes)
)

// scripts are the behaviors of the double, with the expected outcome of the
// pods and the statements that are then false.
var scripts = map[string]struct {
	script string
	counts v1alpha1.Outcome
	fails  []string
	notes  []string
}{
	"every check passes":             {`{}`, pass, nil, nil},
	"every check fails":              {`{"default": {"verdict": "fail"}}`, fail, nil, nil},
	"every PRE check fails":          {`{"checks": [{"match": {"stage": "PRE"}, "then": {"verdict": "fail"}}]}`, fail, nil, nil},
	"every POST check fails":         {`{"checks": [{"match": {"stage": "POST"}, "then": {"verdict": "fail"}}]}`, fail, nil, nil},
	"a fail has rules":               {`{"default": {"verdict": "fail", "rules": [{"name": "errors", "verdict": "FAIL", "msg": "5xx"}]}}`, fail, nil, nil},
	"the verdict is unpass":          {`{"default": {"verdict": "unpass"}}`, fail, nil, nil},
	"the verdict is none":            {`{"default": {"verdict": "none"}}`, none, nil, nil},
	"the verdict is inconc":          {`{"default": {"verdict": "inconc"}}`, none, nil, nil},
	"the verdict is unknown":         {`{"default": {"verdict": "xyz"}}`, none, nil, []string{meaning}},
	"checks time out":                {`{"default": {"ending": "timeout"}}`, none, nil, []string{passesConfirmedIs}},
	"checks take too long":           {`{"checkTimeout": "20ms", "default": {"delay": "1h"}}`, none, nil, []string{passesConfirmedIs}},
	"checks throw":                   {`{"default": {"ending": "exception"}}`, none, nil, []string{passesConfirmedIs}},
	"POST passes before it ends":     {`{"checks": [{"match": {"stage": "POST"}, "then": {"premature": true, "delay": "20ms"}}]}`, pass, nil, nil},
	"POST passes before it fails":    {`{"checks": [{"match": {"stage": "POST"}, "then": {"premature": true, "verdict": "fail"}}]}`, none, nil, []string{passesConfirmedIs}},
	"starts are forgotten":           {`{"default": {"forgotten": true}}`, none, noCallbacks, nil},
	"judged without rules":           {`{"default": {"noRules": true}}`, pass, nil, nil},
	"an emergency":                   {`{"default": {"emergency": true}}`, pass, nil, nil},
	"checks take a while":            {`{"default": {"delay": "50ms"}}`, pass, nil, nil},
	"callbacks are late":             {`{"default": {"lag": "50ms"}}`, pass, nil, nil},
	"callbacks are early":            {`{"default": {"early": true}}`, pass, nil, nil},
	"callbacks come twice":           {`{"default": {"copies": 2}}`, pass, nil, nil},
	"copies come out of order":       {`{"default": {"copies": 2, "copyEvery": "60ms"}}`, pass, nil, nil},
	"checks never end":               {`{"default": {"never": true}}`, none, noCallbacks, nil},
	"checks are skipped":             {`{"default": {"skipCheck": true}}`, none, finishes, nil},
	"callbacks of passes are lost":   {`{"default": {"lost": true}}`, pass, noCallbacks, nil},
	"callbacks of fails are lost":    {`{"default": {"lost": true, "verdict": "fail"}}`, none, noCallbacks, nil},
	"callbacks name unknown nodes":   {`{"default": {"unknownNode": true}}`, pass, with(noCallbacks, called), nil},
	"callbacks are signed badly":     {`{"default": {"badSignature": true}}`, pass, with(noCallbacks, signed), nil},
	"callbacks have an old time":     {`{"default": {"skew": "-10m"}}`, pass, with(noCallbacks, timely), nil},
	"callbacks cannot be read":       {`{"default": {"badBody": "not JSON"}}`, pass, with(noCallbacks, readable), nil},
	"callbacks are of actions":       {`{"default": {"checkType": "CHANGE_ACTION"}}`, pass, []string{checked}, nil},
	"callbacks are of orders":        {`{"default": {"checkType": "CHANGE_ORDER"}}`, pass, []string{checked}, nil},
	"binary CloudEvents":             {`{"default": {"as": "binary"}}`, pass, nil, nil},
	"structured CloudEvents":         {`{"default": {"as": "structured"}}`, pass, nil, nil},
	"batched CloudEvents":            {`{"default": {"as": "batched"}}`, pass, nil, nil},
	"CloudEvents that fail":          {`{"default": {"as": "binary", "verdict": "fail", "message": "find error"}}`, fail, nil, nil},
	"CloudEvents without a verdict":  {`{"default": {"as": "structured", "verdict": "inconc"}}`, none, nil, nil},
	"a start is answered with 901":   {`{"faults": [{"action": "submitChangeExecBatchStartNotify", "times": 1, "fault": "901"}]}`, pass, nil, nil},
	"a start is answered with 502":   {`{"faults": [{"action": "submitChangeExecBatchStartNotify", "times": 1, "fault": "502"}]}`, pass, []string{envelopes}, nil},
	"an order is answered with 500":  {`{"faults": [{"action": "submitChangeExecOrder", "times": 1, "fault": "500"}]}`, pass, []string{envelopes}, nil},
	"the answer to a start is lost":  {`{"faults": [{"action": "submitChangeExecBatchStartNotify", "times": 1, "fault": "reset", "after": true}]}`, pass, []string{envelopes}, nil},
	"the answer to a finish is lost": {`{"faults": [{"action": "submitChangeFinishNotify", "times": 1, "fault": "reset", "after": true}]}`, pass, []string{envelopes}, nil},
	"a finish is lost":               {`{"faults": [{"action": "submitChangeFinishNotify", "times": 1, "fault": "reset"}]}`, pass, []string{envelopes}, nil},
	"a retrieve is answered in HTML": {`{"faults": [{"action": "retrieveChangeCheck", "times": 1, "fault": "garbage"}]}`, pass, []string{envelopes}, nil},
	"calls are slow":                 {`{"faults": [{"fault": "slow", "delay": "5ms"}]}`, pass, nil, nil},
	// A CloudEvent has no rules, so a timed-out check is not recognized.
	"CloudEvents that time out": {
		`{"default": {"as": "binary", "ending": "timeout"}}`, pass, []string{retrieves},
		[]string{"a finish before the PRE verdict is rejected with 103"},
	},
}

func with(list []string, more ...string) []string { return slices.Concat(list, more) }

func TestEachScriptOfTheDoubleGivesTheExpectedReport(t *testing.T) {
	for name, tc := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			callbackWait := 10 * time.Second
			if slices.Contains(tc.fails, finishes[0]) {
				callbackWait = 250 * time.Millisecond // no callback will arrive
			}
			f := fixture{script: tc.script, callbackWait: callbackWait}
			if tc.counts == pass && strings.Contains(tc.script, "premature") {
				f.lateWait = 5 * time.Second // retrieve confirms the pass when the check has ended
			}
			r := try(t, f)
			if !r.counts(tc.counts) {
				t.Errorf("the outcomes are %v, want %s", r.outcomes, tc.counts)
			}
			if diff := cmp.Diff(tc.fails, r.failed(required)); diff != "" {
				t.Errorf("required (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, r.failed(published)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if t.Failed() {
				_ = r.print(t.Output())
			}
		})
	}
}

func TestAPodVerdictCountsForThatPod(t *testing.T) {
	r := try(t, fixture{callbackWait: 10 * time.Second, script: `{"checks": [{"match": {"stage": "POST", "batchNo": 0}, "then": {
		"as": "structured", "podResults": [{"pod": "conformance-b", "verdict": "fail", "message": "find error"}]}}]}`})
	want := []podOutcome{{"conformance-a", pass, ""}, {"conformance-b", fail, "find error"}, {"conformance-c", pass, ""}}
	if diff := cmp.Diff(want, r.outcomes, cmp.AllowUnexported(podOutcome{})); diff != "" {
		t.Error(diff)
	}
	if failed := r.failed(required); failed != nil {
		t.Error(failed)
	}
}
