package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// report is the end of a run.
type report struct {
	results  []result
	stages   []stageReport
	outcomes []podOutcome
	other    int
}

// stageReport is what was said of one check.
type stageReport struct{ what, said, retrieve string }

// conclude hears everything that came, and says what it counts as.
func (s *side) conclude(ctx context.Context, results []result) report {
	out := report{results: results}
	for _, a := range s.asked {
		var words []string
		for _, r := range s.came.believed(a.node, a.stage) {
			word := fmt.Sprintf("%q as %s", r.Data.Verdict, r.Form)
			if r.Unjudged {
				word += " with no rule"
			}
			words = append(words, word)
		}
		said := strings.Join(words, ", ")
		switch {
		case a.skipped:
			said = "it does not check this"
		case said == "":
			said = "nothing"
		}
		retrieve := "not pass"
		if s.passed(ctx, a.node, a.stage) {
			retrieve = "pass"
		}
		out.stages = append(out.stages, stageReport{a.what, said, retrieve})
	}
	for _, b := range s.batches {
		for _, stage := range []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost} {
			b.hear(ctx, s, stage)
		}
		out.outcomes = append(out.outcomes, b.outcomes()...)
	}
	for _, a := range s.came.arrivals() {
		for _, r := range a.said {
			if !strings.HasPrefix(r.Data.BizExecOrderID, s.order) {
				out.other++
			}
		}
	}
	return out
}

// failed returns what is wrong at a level.
func (r report) failed(at level) []string {
	var out []string
	for _, c := range r.results {
		if c.level == at && c.failed() {
			out = append(out, c.says)
		}
	}
	return out
}

// counts says whether every pod counts as the outcome.
func (r report) counts(as v1alpha1.Outcome) bool {
	for _, o := range r.outcomes {
		if o.outcome != as {
			return false
		}
	}
	return len(r.outcomes) > 0
}

// print writes the report for a person.
func (r report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) } // Flush has the error
	for _, c := range r.results {
		switch {
		case c.err == nil:
			line("ok\t%s", c.says)
		case c.skipped():
			line("skip\t%s: %s", c.says, c.err)
		case c.level == required:
			line("FAIL\t%s: %s", c.says, oneLine(c.err))
		default:
			line("note\t%s: %s", c.says, oneLine(c.err))
		}
	}
	line("\nCHECK\tCALLED BACK\tRETRIEVE")
	for _, s := range r.stages {
		line("%s\t%s\t%s", s.what, s.said, s.retrieve)
	}
	line("\nPOD\tCOUNTS AS\tMESSAGE")
	for _, o := range r.outcomes {
		line("%s\t%s\t%s", o.pod, o.outcome, o.message)
	}
	if r.other > 0 {
		line("\n%d verdicts were about orders of others and were not looked at.", r.other)
	}
	line("\n%d required and %d published sentences do not hold.", len(r.failed(required)), len(r.failed(published)))
	return table.Flush()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
