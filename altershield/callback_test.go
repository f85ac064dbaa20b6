package altershield

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// callbackJSON returns a callback with the verdict, in the server's format.
func callbackJSON(verdict string) string {
	return `{"callbackRequest":{"bizExecOrderId":"o","changeSceneKey":"s","defenseStageEnum":"POST","nodeId":"n",` +
		`"verdict":` + verdict + `},"changeCheckType":"CHANGE_BATCH"}`
}

func TestParseCallback(t *testing.T) {
	base := Callback{BizExecOrderID: "o", NodeID: "n", Stage: v1alpha1.StagePost, CheckType: CheckBatch}
	with := func(change func(*Callback)) Callback {
		c := base
		change(&c)
		return c
	}
	passed := Rule{Name: "latency", Verdict: "PASS"}
	failed := Rule{Name: "error rate", Verdict: "FAIL", Msg: "5xx above 1 %", URL: "http://r/1"}
	for name, tc := range map[string]struct {
		body string
		want Callback
	}{
		"a pass with rules is confirmed": {
			callbackJSON(`{"allFinish":true,"checkPass":true,"emergency":false,"rollback":false,"rules":[{"name":"latency","verdict":"PASS"}],"verdict":"pass"}`),
			with(func(c *Callback) { c.Verdict, c.CheckPass, c.Rules = "pass", true, []Rule{passed} }),
		},
		"a pass with empty rules is unconfirmed": {
			callbackJSON(`{"checkPass":true,"rules":[],"verdict":"pass"}`),
			with(func(c *Callback) { c.Verdict, c.CheckPass, c.Unconfirmed = "pass", true, true }),
		},
		"a pass without rules is unconfirmed": {
			callbackJSON(`{"checkPass":true,"rules":null,"verdict":"PASS"}`),
			with(func(c *Callback) { c.Verdict, c.CheckPass, c.Unconfirmed = "PASS", true, true }),
		},
		"a pass with a null rule is unconfirmed": {
			callbackJSON(`{"checkPass":true,"rules":[null],"verdict":"pass"}`),
			with(func(c *Callback) { c.Verdict, c.CheckPass, c.Unconfirmed = "pass", true, true }),
		},
		"the message of a fail names the failed rules": {
			callbackJSON(`{"checkPass":false,"rules":[{"name":"latency","verdict":"PASS"},{"name":"error rate","verdict":"FAIL","msg":"5xx above 1 %","url":"http://r/1"}],"verdict":"fail"}`),
			with(func(c *Callback) {
				c.Verdict, c.Rules, c.Message = "fail", []Rule{passed, failed}, "error rate: 5xx above 1 % (http://r/1)"
			}),
		},
		"a fail without rules has no message": {
			callbackJSON(`{"checkPass":false,"rules":[],"verdict":"fail"}`),
			with(func(c *Callback) { c.Verdict = "fail" }),
		},
		"the message of a fail omits ignored rules": {
			callbackJSON(`{"rules":[{"controlKey":"k","verdict":"FAIL","ignored":true},{"externalRuleId":"7","verdict":"fail"}],"verdict":"fail"}`),
			with(func(c *Callback) {
				c.Verdict, c.Message = "fail", "7: failed"
				c.Rules = []Rule{{ControlKey: "k", Verdict: "FAIL", Ignored: true}, {ExternalRuleID: "7", Verdict: "fail"}}
			}),
		},
		"inconc is kept": {
			callbackJSON(`{"checkPass":false,"rules":[{"name":"latency","verdict":"INCONC"}],"verdict":"inconc"}`),
			with(func(c *Callback) { c.Verdict, c.Rules = "inconc", []Rule{{Name: "latency", Verdict: "INCONC"}} }),
		},
		"an unknown verdict is kept": {
			callbackJSON(`{"verdict":"xyz"}`), with(func(c *Callback) { c.Verdict = "xyz" }),
		},
		"verdict takes precedence over checkPass": {
			callbackJSON(`{"checkPass":true,"verdict":"fail"}`), with(func(c *Callback) { c.Verdict, c.CheckPass = "fail", true }),
		},
		"without verdict checkPass decides": {
			callbackJSON(`{"checkPass":false,"verdict":null}`), with(func(c *Callback) { c.Verdict = "fail" }),
		},
		"without both there is no verdict": {callbackJSON(`{}`), base},
		"emergency is kept": {
			callbackJSON(`{"verdict":"none","emergency":true}`), with(func(c *Callback) { c.Verdict, c.Emergency = "none", true }),
		},
		"a null verdict is no verdict":    {callbackJSON(`null`), base},
		"a missing verdict is no verdict": {`{"callbackRequest":{"bizExecOrderId":"o","defenseStageEnum":"POST","nodeId":"n"},"changeCheckType":"CHANGE_BATCH"}`, base},
		"a missing check type is allowed": {`{"callbackRequest":{"bizExecOrderId":"o","defenseStageEnum":"post","nodeId":"n"}}`, with(func(c *Callback) { c.CheckType = "" })},
		"unknown fields are ignored":      {`{"new":[1],"callbackRequest":{"new":{},"bizExecOrderId":"o","defenseStageEnum":"POST","nodeId":"n"},"changeCheckType":"CHANGE_BATCH"}`, base},
		"fields of other types in a rule do not invalidate the verdict": {
			callbackJSON(`{"verdict":"fail","rules":[{"externalRuleId":7,"status":{"x":1},"msg":null,"allowIgnore":"true","verdict":"FAIL"}]}`),
			with(func(c *Callback) {
				c.Verdict, c.Message = "fail", "7: failed"
				c.Rules = []Rule{{ExternalRuleID: "7", Verdict: "FAIL", AllowIgnore: true}}
			}),
		},
		"a verdict is truncated to 63 bytes": {
			callbackJSON(`{"verdict":"` + strings.Repeat("变", 30) + `"}`), with(func(c *Callback) { c.Verdict = strings.Repeat("变", 21) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCallback([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}

func TestACallbackWithoutOrderNodeOrStageIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":       ``,
		"not JSON":      `<html>`,
		"a list":        `[]`,
		"null":          `null`,
		"no request":    `{}`,
		"no order":      `{"callbackRequest":{"defenseStageEnum":"PRE","nodeId":"n"}}`,
		"a null order":  `{"callbackRequest":{"bizExecOrderId":null,"defenseStageEnum":"PRE","nodeId":"n"}}`,
		"no node":       `{"callbackRequest":{"bizExecOrderId":"o","defenseStageEnum":"PRE"}}`,
		"no stage":      `{"callbackRequest":{"bizExecOrderId":"o","nodeId":"n"}}`,
		"another stage": `{"callbackRequest":{"bizExecOrderId":"o","nodeId":"n","defenseStageEnum":"MID"}}`,
	} {
		if got, err := ParseCallback([]byte(body)); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestAMessageIsTruncatedBetweenRunes(t *testing.T) {
	long := Rule{Name: "规则", Verdict: "FAIL", Msg: strings.Repeat("变", 200)}
	for name, tc := range map[string]struct {
		rules []Rule
		ends  string
	}{
		"one long rule":                             {[]Rule{{Name: "n", Verdict: "FAIL", Msg: strings.Repeat("变", 2000)}}, "变"},
		"the second does not fit":                   {[]Rule{long, long}, "; and 1 more"},
		"one of twelve rules fits":                  {repeated(long, 12), "; and 11 more"},
		"the first rule is truncated for the count": {[]Rule{{Name: "n", Verdict: "FAIL", Msg: strings.Repeat("变", 2000)}, long}, "变; and 1 more"},
		"five short rules fit":                      {repeated(Rule{Name: "r", Verdict: "FAIL", Msg: "m"}, 5), "r: m; r: m; r: m; r: m; r: m"},
		"some of 500 short rules fit":               {repeated(Rule{Name: "r", Verdict: "FAIL", Msg: "m"}, 500), " more"},
		"invalid UTF-8 is replaced":                 {[]Rule{{Name: "n", Verdict: "FAIL", Msg: "a\xffb"}}, "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			got := compose(v1alpha1.OutcomeFail, tc.rules)
			if len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, tc.ends) {
				t.Errorf("%d bytes, want at most %d, ending in %q: %q", len(got), maxMessage, tc.ends, got)
			}
		})
	}
}

func repeated(r Rule, n int) []Rule {
	var out []Rule
	for range n {
		out = append(out, r)
	}
	return out
}

func FuzzParseCallback(f *testing.F) {
	f.Add([]byte(callbackJSON(`{"checkPass":true,"rules":[],"verdict":"pass"}`)))
	f.Add([]byte(callbackJSON(`{"rules":[{"name":"r","verdict":"FAIL","msg":"` + strings.Repeat("变", 400) + `"},null,{"verdict":"FAIL"}],"verdict":"fail"}`)))
	f.Add([]byte(callbackJSON(`null`)))
	f.Add([]byte(`{"callbackRequest":null}`))
	f.Add([]byte(fmt.Sprintf(`{"callbackRequest":{"bizExecOrderId":%q,"defenseStageEnum":"PRE","nodeId":"n"}}`, "a\x00b")))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := ParseCallback(body)
		if err != nil {
			return
		}
		if c.BizExecOrderID == "" || c.NodeID == "" || (c.Stage != v1alpha1.StagePre && c.Stage != v1alpha1.StagePost) {
			t.Errorf("accepted without order, node or stage: %+v", c)
		}
		if len(c.Message) > maxMessage || !utf8.ValidString(c.Message) || len(c.Verdict) > maxWord || !utf8.ValidString(c.Verdict) {
			t.Errorf("not bounded: %+v", c)
		}
		if c.Unconfirmed != (v1alpha1.ParseVerdict(c.Verdict) == v1alpha1.OutcomePass && len(c.Rules) == 0) {
			t.Errorf("unconfirmed: %+v", c)
		}
	})
}
