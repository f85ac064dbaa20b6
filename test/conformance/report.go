package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// report is the result of a run.
type report struct {
	results  []result
	stages   []stageReport
	outcomes []podOutcome
	other    int
}

// stageReport has the verdicts of one check.
type stageReport struct{ name, received, retrieve string }

// evaluate applies all trusted verdicts and returns the report.
func (s *suite) evaluate(ctx context.Context, results []result) report {
	out := report{results: results}
	for _, a := range s.requested {
		var verdicts []string
		for _, r := range s.callbacks.trusted(a.node, a.stage) {
			verdict := fmt.Sprintf("%q as %s", r.Data.Verdict, r.Form)
			if r.WithoutRules {
				verdict += " without a rule"
			}
			verdicts = append(verdicts, verdict)
		}
		received := strings.Join(verdicts, ", ")
		switch {
		case a.skipped:
			received = "skipped by the server"
		case received == "":
			received = "no callback"
		}
		retrieve := "not pass"
		if s.passed(ctx, a.node, a.stage) {
			retrieve = "pass"
		}
		out.stages = append(out.stages, stageReport{a.name, received, retrieve})
	}
	for _, b := range s.batches {
		for _, stage := range []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost} {
			b.applyNew(ctx, s, stage)
		}
		out.outcomes = append(out.outcomes, b.outcomes()...)
	}
	for _, a := range s.callbacks.arrivals() {
		for _, r := range a.received {
			if !strings.HasPrefix(r.Data.BizExecOrderID, s.order) {
				out.other++
			}
		}
	}
	return out
}

// failed returns the false statements of a level.
func (r report) failed(at level) []string {
	var out []string
	for _, c := range r.results {
		if c.level == at && c.failed() {
			out = append(out, c.statement)
		}
	}
	return out
}

// counts reports whether every pod has the outcome.
func (r report) counts(as v1alpha1.Outcome) bool {
	for _, o := range r.outcomes {
		if o.outcome != as {
			return false
		}
	}
	return len(r.outcomes) > 0
}

// label is the label of a statement that is not true.
func (r result) label() string {
	switch {
	case r.skipped():
		return "skip"
	case r.level == required:
		return "FAIL"
	default:
		return "note"
	}
}

// print writes the report as text.
func (r report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) } // Flush has the error
	for _, c := range r.results {
		if c.err == nil {
			line("ok\t%s", c.statement)
		} else {
			line("%s\t%s: %s", c.label(), c.statement, oneLine(c.err))
		}
	}
	line("\nCHECK\tCALLBACKS\tRETRIEVE")
	for _, s := range r.stages {
		line("%s\t%s\t%s", s.name, s.received, s.retrieve)
	}
	line("\nPOD\tOUTCOME\tMESSAGE")
	for _, o := range r.outcomes {
		line("%s\t%s\t%s", o.pod, o.outcome, o.message)
	}
	if r.other > 0 {
		line("\n%d verdicts of other orders were ignored.", r.other)
	}
	line("\n%d required and %d published statements are false.", len(r.failed(required)), len(r.failed(published)))
	return table.Flush()
}

// maxMessage is the maximum length of a printed message, in bytes.
const maxMessage = 200

func oneLine(err error) string {
	return text.Truncate(strings.ReplaceAll(err.Error(), "\n", "; "), maxMessage)
}
