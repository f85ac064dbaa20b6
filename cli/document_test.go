package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
)

// page is the page of the plugin.
const page = "../docs/kubectl.md"

// rowOf matches the row of a command, whose arguments are in capitals, brackets or flags.
func rowOf(command string) *regexp.Regexp {
	return regexp.MustCompile("(?m)^\\| `" + command + "( [A-Z\\[-][^`]*)?`.*$")
}

// shows reports whether a text has a flag, and not only a longer one.
func shows(text string, f *pflag.Flag) bool {
	flag := "--" + f.Name
	if f.Shorthand != "" {
		flag += "|-" + f.Shorthand
	}
	return regexp.MustCompile("[ `](" + flag + ")([ `]|$)").MatchString(text)
}

func TestThePageHasEachCommandAndEachOfItsFlags(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(raw), "## Commands")
	rows, _, _ = strings.Cut(rows, "## Completion")
	// Flag -o is described below the rows, for several commands.
	rows, below, _ := strings.Cut(rows, "\n\n`get`")
	withOutput, _, ok := strings.Cut("`get`"+below, " have `-o json`")
	if !ok {
		t.Fatal("no text about -o")
	}
	root := cli.New("test", genericiooptions.NewTestIOStreamsDiscard())
	var known []string
	var visit func(prefix string, c *cobra.Command)
	visit = func(prefix string, c *cobra.Command) {
		for _, sub := range c.Commands() {
			name := prefix + sub.Name()
			if sub.Name() == "help" {
				continue
			}
			if sub.HasSubCommands() {
				visit(name+" ", sub)
				if !sub.LocalNonPersistentFlags().HasFlags() {
					continue // it only has other commands
				}
			}
			known = append(known, name)
			row := rowOf(name).FindString(rows)
			if row == "" {
				t.Errorf("%s has no row for %s", page, name)
			}
			sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				group, _, _ := strings.Cut(name, " ")
				if f.Name == "help" || shows(row, f) || f.Name == "output" && strings.Contains(withOutput, "`"+group+"`") {
					return
				}
				t.Errorf("%s does not have the flag --%s of %s", page, f.Name, name)
			})
		}
	}
	visit("", root)
	for line := range strings.Lines(rows) {
		if strings.HasPrefix(line, "| `") && !slices.ContainsFunc(known, func(name string) bool { return rowOf(name).MatchString(line) }) {
			t.Errorf("%s has a row that is of no command: %s", page, line)
		}
	}
}

// cobra's scripts complete a command breakwater, which does not exist: kubectl asks the plugin.
func TestKubectlGetsCompletionsAndNoScriptIsPrinted(t *testing.T) {
	var out, errOut bytes.Buffer
	code := cli.Run(t.Context(), "test", []string{"__complete", "st"}, genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
	if code != 0 || !strings.HasPrefix(out.String(), "status\t") {
		t.Errorf("code %d, %s, %s", code, out.String(), errOut.String())
	}
	out.Reset()
	if code := cli.Run(t.Context(), "test", []string{"completion", "bash"}, genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}); code != 1 || out.Len() > 0 {
		t.Errorf("completion: code %d, %s", code, out.String())
	}
}

func TestVersionPrintsTheLinkedVersion(t *testing.T) {
	var out bytes.Buffer
	if code := cli.Run(t.Context(), "v0.1.0", []string{"version"}, genericiooptions.IOStreams{Out: &out, ErrOut: &out}); code != 0 || !strings.Contains(out.String(), " v0.1.0 ") {
		t.Errorf("code %d: %s", code, out.String())
	}
}

// A script takes exit code 0 of simulate for the answer that the request would be allowed.
func TestAnUnknownCommandIsAnError(t *testing.T) {
	for command, want := range map[string]string{
		"aprove":                      `unknown command "aprove"`,
		"simulate delte pod/web-0":    `unknown command "delte"`,
		"simulate":                    "write what to simulate: delete, evict, drain or apply",
		"tree deployment/web again":   "accepts at most 1 arg",
		"status":                      "write one KIND/NAME, for example deployment/web",
		"status deployment web":       "write deployment/web, as one argument",
		"get deployment web":          "write deployment/web, as one argument",
		"deadletters replya report-1": `unknown command "replya"`,
	} {
		var out bytes.Buffer
		if code := cli.Run(t.Context(), "", strings.Fields(command), genericiooptions.IOStreams{Out: &out, ErrOut: &out}); code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, %q, want code 1 and %s", command, code, out.String(), want)
		}
	}
}
