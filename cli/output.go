package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// formats are the values of -o. An empty -o selects the output for people.
var formats = []string{"json", "yaml", "name"}

// outputFlag adds -o to a command, and checks its value before RunE, which must be set already.
func outputFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+"; for people if empty")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails for an unknown flag only
	next := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if *format != "" && !slices.Contains(formats, *format) {
			return fmt.Errorf("-o %s is unknown: use %s", *format, strings.Join(formats, ", "))
		}
		return next(c, args)
	}
}

// printAs writes an answer in a format. names is what -o name prints: the objects of the answer, only
// what failed (doctor, simulate), or what can be replayed (deadletters). The function people writes the output for people.
func printAs(w io.Writer, format string, answer any, names []string, people func(io.Writer) error) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	case "yaml":
		data, err := yaml.Marshal(answer)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case "name":
		for _, n := range names {
			if _, err := fmt.Fprintln(w, n); err != nil {
				return err
			}
		}
		return nil
	default:
		return people(w)
	}
}

// list returns items as a list that JSON has as [] if it is empty, never as null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// mark begins the colours of colored until safeWriter writes them. It is random, so texts of others do not have it.
var mark = rand.Text()

// escape is the beginning or end of a colour of colored, which takes no place on a terminal.
var escape = regexp.MustCompile(mark + "[0-9]+m")

func widthOf(cell string) int { return utf8.RuneCountInString(escape.ReplaceAllString(cell, "")) }

// table writes rows with aligned columns, each on one line. text/tabwriter counts escape sequences as text.
func table(w io.Writer, header []string, rows [][]string) error {
	all := append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		for i, cell := range row {
			row[i] = text.OneLine(cell)
			widths[i] = max(widths[i], widthOf(row[i]))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-widthOf(cell)+3))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// age is the time since then, as kubectl prints it.
func age(then, now time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(then))
}

// safeWriter replaces control characters: texts of others could otherwise change what a terminal shows. It keeps line
// feeds and tabs, and then writes the escape sequences of the colours of colored. Each write has whole characters and marks.
type safeWriter struct{ io.Writer }

// control is a control character of a terminal.
var control = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}]`)

// Write implements io.Writer.
func (w safeWriter) Write(p []byte) (int, error) {
	safe := control.ReplaceAllString(strings.ToValidUTF8(string(p), string(utf8.RuneError)), string(utf8.RuneError))
	if _, err := io.WriteString(w.Writer, strings.ReplaceAll(safe, mark, "\x1b[")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// terminal returns the terminal to which a stream writes; nil if there is none, or if it has no escape sequences.
func terminal(stream io.Writer) *os.File {
	if safe, ok := stream.(safeWriter); ok {
		stream = safe.Writer
	}
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) && hasEscapeSequences(f) {
		return f
	}
	return nil
}

// paint colours states on a terminal, unless NO_COLOR is set.
func (a *app) paint() diagnosis.Paint {
	if terminal(a.Out) == nil || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return diagnosis.Plain
	}
	return colored
}

// colors are the colours of states as parameters of the escape sequence.
var colors = map[diagnosis.State]string{
	diagnosis.StatePassed: "32", diagnosis.StateNotWaiting: "32", diagnosis.StateAllowing: "32", diagnosis.StateFailed: "31", diagnosis.StateHeld: "33", diagnosis.StateDenying: "33", diagnosis.StateRunning: "36",
}

func colored(word string, meaning diagnosis.State) string {
	if color, ok := colors[meaning]; ok {
		return mark + color + "m" + word + mark + "0m"
	}
	return word
}
