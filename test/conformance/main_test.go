package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

// runCommand runs the command against a server. It retries with another address if
// another process uses the address first.
func runCommand(t *testing.T, script string, args []string) (code int, printed string) {
	t.Helper()
	for range 5 {
		port, err := freeport.Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		listen := fmt.Sprintf("127.0.0.1:%d", port)
		url := fixture{script: script}.serve(t, "http://"+listen+callbackPath)
		var out strings.Builder
		code = run(t.Context(), append([]string{"-url", url, "-listen", listen}, args...), &out, &out)
		if printed = out.String(); !strings.Contains(printed, "address already in use") {
			break
		}
	}
	return code, printed
}

func TestTheExitCodeReportsConformance(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		script string
		flags  []string
		want   int
		output string
	}{
		"a good server": {`{}`, nil, conforms, "conformance-a  Pass"},
		"a good server with the expected outcome":           {`{"default": {"verdict": "fail"}}`, []string{"-expect", "Fail"}, conforms, "conformance-a  Fail"},
		"a good server with another outcome":                {`{"default": {"verdict": "fail"}}`, []string{"-expect", "Pass"}, deviates, "not every pod has outcome Pass"},
		"a server with a required statement false":          {`{"default": {"checkType": "CHANGE_ORDER"}}`, nil, deviates, "FAIL  " + checked},
		"a server with a published statement false":         {`{"default": {"verdict": "xyz"}}`, nil, conforms, "note  " + meaning},
		"a server with a published statement false, strict": {`{"default": {"verdict": "xyz"}}`, []string{"-strict"}, deviates, "note  " + meaning},
		"a server that does not always pass, in three runs": {
			`{"checks": [{"match": {"stage": "POST", "batchNo": 0}, "nth": 2, "then": {"premature": true, "verdict": "fail"}}]}`,
			[]string{"-runs", "3", "-expect", "Pass"}, deviates, "1      note    " + passesConfirmedIs,
		},
		"a good server in three runs":  {`{}`, []string{"-runs", "3", "-expect", "Pass"}, conforms, "3      conformance-a  Pass"},
		"a server that rejects orders": {`{"faults": [{"fault": "404"}]}`, nil, deviates, "FAIL  an order is opened"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, out := runCommand(t, tc.script, append([]string{"-token-file", token, "-late-wait", "50ms", "-wait", "10s"}, tc.flags...))
			if got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
			if !strings.Contains(out, tc.output) {
				t.Errorf("the output has no %q", tc.output)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func TestInvalidFlagsAreReported(t *testing.T) {
	url := []string{"-url", "http://127.0.0.1:1"}
	for message, tc := range map[string]struct {
		token string
		args  []string
	}{
		"-url is missing":     {"x", nil},
		"token is missing":    {"", url},
		"no such file":        {"", append(url, "-token-file", filepath.Join(t.TempDir(), "none"))},
		"invalid -runs":       {"x", append(url, "-runs", "0")},
		"invalid -expect":     {"x", append(url, "-expect", "Perhaps")},
		"provided but not de": {"x", []string{"-what"}},
		"serve callbacks":     {"x", append(url, "-listen", "nowhere")},
	} {
		t.Setenv("ALTERSHIELD_TOKEN", tc.token)
		var out strings.Builder
		if got := run(t.Context(), tc.args, &out, &out); got != untested {
			t.Errorf("%v: exit code %d", tc.args, got)
		}
		if !strings.Contains(out.String(), message) {
			t.Errorf("%v: the output is %s, want %q", tc.args, out.String(), message)
		}
	}
}
