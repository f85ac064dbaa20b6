package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// A program that iterates over a list, as `jq '.pods[]'` does, fails at null.
func TestAnEmptyListOfAnAnswerIsNotNull(t *testing.T) {
	released := func(a *app) error { return a.printReleases(a.Out, "json", nil, false, "") }
	simulation := func(a *app) error { return a.printSimulated("json", nil) }
	answers := map[string]struct {
		print func(*app) error
		want  string
	}{
		"get":         {released, `{"kind":"ChangeWorkloadList","apiVersion":"app.ops.cloud.alipay.com/v1alpha1","metadata":{},"items":[]}`},
		"status":      {func(a *app) error { return printAs(a.Out, "json", statusAnswer{}, nil, nil) }, `{"namespace":"","workload":"","attempt":0,"state":"","counts":{"pods":0,"preparing":0,"checking":0,"passed":0,"failed":0,"unjudged":0}}`},
		"explain":     {func(a *app) error { return a.printExplanation("json", diagnosis.Explanation{}, "") }, `{"subject":"","state":"","why":[],"waysOut":[]}`},
		"delete":      {simulation, `{"requests":[]}`},
		"evict":       {simulation, `{"requests":[]}`},
		"drain":       {simulation, `{"requests":[]}`},
		"apply":       {simulation, `{"requests":[]}`},
		"budgets":     {func(a *app) error { return a.printBudgets("json", budgetsAnswer{}) }, `{"budgets":[],"flowControls":[]}`},
		"permissions": {func(a *app) error { return a.printPermissions("json", nil, nil) }, `{"pods":[]}`},
		"deadletters": {func(a *app) error { return a.printDeadLetters("json", nil) }, `{"deadLetters":[]}`},
		"doctor":      {func(a *app) error { return a.printChecks("json", nil) }, `{"checks":[]}`},
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if _, ok := answers[c.Name()]; !ok && c.Flags().Lookup("output") != nil {
			t.Errorf("%s has -o json, but no row here", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(New("", genericiooptions.IOStreams{}))
	for name, tc := range answers {
		t.Run(name, func(t *testing.T) {
			var out, got bytes.Buffer
			if err := tc.print(&app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}}); err != nil {
				t.Fatal(err)
			}
			if err := json.Compact(&got, out.Bytes()); err != nil || got.String() != tc.want {
				t.Errorf("got %s, %v, want %s", got.String(), err, tc.want)
			}
		})
	}
}

func TestATableIsAlignedWithColours(t *testing.T) {
	var out bytes.Buffer
	rows := [][]string{
		{"Grün", colored("Ready", diagnosis.StatePassed), "1d", "a message"},
		{"deployment/web", colored("Unknown", diagnosis.StateNotJudged), "2d", ""},
		{"deployment/api", colored("HeldUnjudged", diagnosis.StateHeld), "3d", "another"},
	}
	if err := table(&out, []string{"WORKLOAD", "REASON", "AGE", "MESSAGE"}, rows); err != nil {
		t.Fatal(err)
	}
	want := `
WORKLOAD         REASON         AGE   MESSAGE
Grün             Ready          1d    a message
deployment/web   Unknown        2d
deployment/api   HeldUnjudged   3d    another
`
	if diff := cmp.Diff(want, "\n"+escape.ReplaceAllString(out.String(), "")); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// A message of a judge could otherwise hide a denial, or set the title of the terminal.
func TestControlCharactersOfOthersDoNotReachTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\n发布\x1b[32mPassed\x1b[0m": "a\tb\n发布�[32mPassed�[0m",
		"\x1b[2J\x1b[5m\x1b]0;x\x07":    "�[2J�[5m�]0;x�",
		"a\rb\x00\x7f\v":                "a�b���",
		"\u0080\u009b2J\u009f":          "��2J�",
		"a\x9b2J":                       "a�2J", // an invalid byte that some terminals read as CSI
		colored("Failed", diagnosis.StateFailed) + "\x1b[32m": "\x1b[31mFailed\x1b[0m�[32m",
	} {
		var out bytes.Buffer
		if n, err := (safeWriter{&out}).Write([]byte(in)); n != len(in) || err != nil || out.String() != want {
			t.Errorf("%q is written as %q, want %q; %d, %v", in, out.String(), want, n, err)
		}
	}
	var out bytes.Buffer
	for _, part := range []string{"\xc2", "\x9b", "\x1b", "[2J"} { // no control character is made of two writes
		_, _ = safeWriter{&out}.Write([]byte(part))
	}
	if got := out.String(); got != "���[2J" {
		t.Errorf("got %q", got)
	}
}
