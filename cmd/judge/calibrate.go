package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/calibrate"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// variants are the sensitivities that calibrate compares; the first one is that of the MetricCheck.
var variants = []judge.Sensitivity{
	{ChangeScale: 1}, {MaxFalsePositiveRate: "0.1%", ChangeScale: 1}, {MaxFalsePositiveRate: "5%", ChangeScale: 1},
	{MaxFalsePositiveRate: "20%", ChangeScale: 1}, {ChangeScale: 0.5}, {ChangeScale: 2},
}

// report is the output of calibrate.
type report struct {
	calibrate.Score
	Variants []variant `json:"variants"`
	Releases []release `json:"releases"`
}

// variant has the figures of one variant.
type variant struct {
	MaxFalsePositiveRate string          `json:"maxFalsePositiveRate"`
	SmallestChange       string          `json:"smallestChange"`
	Precision            calibrate.Share `json:"precision"`
	Recall               calibrate.Share `json:"recall"`
	F1                   calibrate.Share `json:"f1"`
}

type release struct {
	Line    int              `json:"line"`
	New     string           `json:"new"`
	Label   string           `json:"label"`
	Verdict v1alpha1.Verdict `json:"verdict"`
	Reason  string           `json:"reason"`
	Message string           `json:"message"`
}

// pastRelease is a line of the list, with the target and the check that it names.
type pastRelease struct {
	calibrate.Release
	target v1alpha1.Target
	check  v1alpha1.MetricCheckSpec
}

// calibrateCommand judges labelled releases and counts errors.
func calibrateCommand(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	flags := newFlags("calibrate", errs)
	var from prometheusFlags
	from.flags(flags)
	list := flags.String("list", "", "CSV `file` of labelled releases with the header new,old,at,check,label; check is a file relative to the list, or empty")
	asJSON := flags.Bool("json", false, "print JSON")
	interval := intervalFlag(flags)
	parallel := flags.Int("parallel", 2, "releases judged at the same time, 1 to 16")
	if err := parse(flags, args); err != nil {
		return exitError, err
	}
	if *parallel < 1 || *parallel > 16 {
		return exitError, fmt.Errorf("--parallel is %d, want 1 to 16", *parallel)
	}
	client, err := from.client()
	if err != nil {
		return exitError, err
	}
	releases, err := readList(*list)
	if err != nil {
		return exitError, err
	}
	r, err := reportOf(ctx, client, releases, *interval, *parallel)
	if err != nil {
		return exitError, err
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return exitPass, encoder.Encode(r)
	}
	r.print(out)
	return exitPass, nil
}

// readList reads the list and the checks that it names.
func readList(list string) ([]pastRelease, error) {
	text, err := readFile(list)
	if err != nil {
		return nil, fmt.Errorf("--list: %w", err)
	}
	lines, err := calibrate.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("--list %s: %w", list, err)
	}
	releases := make([]pastRelease, len(lines))
	for i, line := range lines {
		target, err := targetOf(line.New, line.Old, line.At)
		if err != nil {
			return nil, fmt.Errorf("--list %s: line %d: %w", list, line.Line, err)
		}
		path := line.Check
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(list), path)
		}
		check, err := checkOf(path)
		if err != nil {
			return nil, fmt.Errorf("--list %s: line %d: %w", list, line.Line, err)
		}
		releases[i] = pastRelease{line, target, check}
	}
	return releases, nil
}

// reportOf judges the releases with each of the variants.
func reportOf(ctx context.Context, client judge.Reader, releases []pastRelease, interval time.Duration, parallel int) (report, error) {
	outcomes := make([][]calibrate.Outcome, len(variants))
	for i := range outcomes {
		outcomes[i] = make([]calibrate.Outcome, len(releases))
	}
	r := report{Releases: make([]release, len(releases))}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, one := range releases {
		group.Go(func() error {
			in := judge.Read(groupCtx, client, one.check, one.target)
			for k, s := range variants {
				record := judge.EvaluateLooks(judge.WithSensitivity(in, s), interval)
				outcomes[k][i] = outcomeOf(in, record, one.Bad)
				if k == 0 {
					r.Releases[i] = release{one.Line, one.New, label(one.Bad), record.Verdict, record.Reason, record.Message}
				}
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return report{}, err
	}
	r.Score = calibrate.ScoreOf(outcomes[0])
	for k, s := range variants {
		score := calibrate.ScoreOf(outcomes[k])
		rate := s.MaxFalsePositiveRate
		if rate == "" {
			rate = "as set"
		}
		r.Variants = append(r.Variants, variant{rate, fmt.Sprintf("x%g", s.ChangeScale), score.Precision, score.Recall, score.F1})
	}
	return r, nil
}

func label(bad bool) string {
	if bad {
		return "bad"
	}
	return "good"
}

func outcomeOf(in evaluate.Input, record v1alpha1.Record, bad bool) calibrate.Outcome {
	o := calibrate.Outcome{Bad: bad, Verdict: record.Verdict}
	if record.DetectionTime != nil {
		o.Detection = record.DetectionTime.Sub(in.Target.StartTime.Time)
	}
	for _, e := range record.Metrics {
		if e.Verdict == v1alpha1.VerdictFail {
			o.Failed = append(o.Failed, e.Name)
		}
		if e.Verdict != v1alpha1.VerdictNone {
			o.Judged = append(o.Judged, e.Name)
		}
	}
	return o
}

func (r report) print(out io.Writer) {
	line := func(name string, s calibrate.Share) {
		_, _ = fmt.Fprintf(out, "%-10s %5.1f %%  (%.1f to %.1f, of %d)\n", name, 100*s.Value, 100*s.Low, 100*s.High, s.Of)
	}
	_, _ = fmt.Fprintf(out, "%d releases, %d bad: %d caught, %d missed (%d of them held); %d good ones failed or held (%d held)\n\n",
		r.Score.Releases, r.Bad, r.Caught, r.Missed, r.HeldBad, r.FalsePositives, r.HeldGood)
	line("precision", r.Precision)
	line("recall", r.Recall)
	line("F1", r.F1)
	line("held", r.Held)
	if d := r.Detection; d != nil {
		seconds := func(v float64) time.Duration { return time.Duration(v) * time.Second }
		_, _ = fmt.Fprintf(out, "time to detection: median %s (%s to %s), longest %s\n", seconds(d.Median), seconds(d.Low), seconds(d.High), seconds(d.Worst))
	}
	_, _ = fmt.Fprintf(out, "\n%-24s %7s %7s %6s %15s\n", "metric", "judged", "caught", "alone", "false positives")
	for _, m := range r.Metrics {
		_, _ = fmt.Fprintf(out, "%-24s %7d %7d %6d %6d (to %.1f %%)\n", m.Name, m.Judged, m.Caught, m.CaughtAlone, m.FalsePositives, 100*m.FalsePositiveRate.High)
	}
	_, _ = fmt.Fprintf(out, "\n%-24s %-16s %10s %8s %6s\n", "max. false-positive rate", "smallest change", "precision", "recall", "F1")
	for _, t := range r.Variants {
		_, _ = fmt.Fprintf(out, "%-24s %-16s %8.1f %% %6.1f %% %4.1f %%\n", t.MaxFalsePositiveRate, t.SmallestChange, 100*t.Precision.Value, 100*t.Recall.Value, 100*t.F1.Value)
	}
	_, _ = fmt.Fprintln(out)
	for _, one := range r.Releases {
		if one.Label == "bad" && one.Verdict != v1alpha1.VerdictFail || one.Label == "good" && one.Verdict != v1alpha1.VerdictPass {
			_, _ = fmt.Fprintf(out, "line %d, %s: %s, %s: %s\n", one.Line, one.Label, one.Verdict, one.Reason, one.Message)
		}
	}
}
