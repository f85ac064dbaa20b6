// SPDX-License-Identifier: Apache-2.0

// Figures judges the recorded releases with the default MetricCheck and prints how many of
// them are caught by kind of fault, strength and load:
//
//	go run ./test/recording/figures tuning tuning-b test
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/calibrate"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/recording"
)

// release is a labeled release with its facts and its verdict.
type release struct {
	facts  map[string]string
	record v1alpha1.Record
}

func (r release) bad() bool { return r.facts["label"] == "bad" }

func (r release) detection() time.Duration {
	if r.record.DetectionTime == nil {
		return 0
	}
	return r.record.DetectionTime.Sub(r.record.Target.StartTime.Time)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all []release
	for _, name := range os.Args[1:] {
		list, err := judgeRun(ctx, recording.Run(name))
		if err != nil {
			fmt.Fprintf(os.Stderr, "figures: %s: %v\n", name, err)
			os.Exit(1)
		}
		all = append(all, list...)
	}
	if len(all) == 0 {
		fmt.Fprintln(os.Stderr, "figures: name the runs to judge: tuning, tuning-b, test")
		os.Exit(2)
	}
	printAll(os.Stdout, all)
}

// judgeRun judges all labeled releases of a run.
func judgeRun(ctx context.Context, run recording.Run) (list []release, err error) {
	folder, err := os.MkdirTemp("", "figures-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	server, err := recording.Serve(ctx, run, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, server.Stop()) }()
	client, err := prometheus.New(server.URL, prometheus.DefaultTimeout, nil)
	if err != nil {
		return nil, err
	}
	labels, err := rows(run, recording.Labels)
	if err != nil {
		return nil, err
	}
	faults, err := rows(run, recording.Faults)
	if err != nil {
		return nil, err
	}
	facts := map[string]map[string]string{}
	for _, row := range faults {
		facts[row["new"]] = row
	}
	for _, row := range labels {
		at, err := time.Parse(time.RFC3339, row["at"])
		if err != nil {
			return nil, fmt.Errorf("parse column at of %s: %w", row["new"], err)
		}
		maps.Copy(row, facts[row["new"]])
		record := judge.Replay(ctx, client, v1alpha1.MetricCheckSpec{}, v1alpha1.Target{New: row["new"], Old: row["old"], StartTime: metav1.NewTime(at)})
		list = append(list, release{row, record})
	}
	return list, nil
}

// rows reads a list of a run as maps by column.
func rows(run recording.Run, name string) ([]map[string]string, error) {
	path, err := run.File(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var list []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		list = append(list, row)
	}
	return list, nil
}

// printAll prints all figures, then those of groups, then the wrong verdicts.
func printAll(out io.Writer, all []release) {
	outcomes := make([]calibrate.Outcome, len(all))
	for i, r := range all {
		outcomes[i] = calibrate.Outcome{Bad: r.bad(), Verdict: r.record.Verdict, Detection: r.detection()}
	}
	score := calibrate.ScoreOf(outcomes)
	share := func(name string, s calibrate.Share) {
		_, _ = fmt.Fprintf(out, "%-10s %5.1f %% (%.1f to %.1f, of %d)\n", name, 100*s.Value, 100*s.Low, 100*s.High, s.Of)
	}
	share("precision", score.Precision)
	share("recall", score.Recall)
	share("held", score.Held)
	if d := score.Detection; d != nil {
		_, _ = fmt.Fprintf(out, "median time to detection %s, longest %s\n", time.Duration(d.Median)*time.Second, time.Duration(d.Worst)*time.Second)
	}
	for _, by := range []string{"fault", "strength", "load", "kept_old_pods", "variant"} {
		group(out, all, by)
	}
	for _, r := range all {
		if r.bad() != (r.record.Verdict == v1alpha1.VerdictFail) || !r.bad() && r.record.Verdict != v1alpha1.VerdictPass {
			_, _ = fmt.Fprintf(out, "\n%s %s %s %s, %s/s: %s, %s: %s\n", r.facts["new"], r.facts["label"], r.facts["fault"]+r.facts["variant"], r.facts["strength"],
				r.facts["load"], r.record.Verdict, r.record.Reason, r.record.Message)
		}
	}
}

// group prints the figures for each value of a column: bad releases by fault, strength, load
// and kept old pods, and good ones by variant.
func group(out io.Writer, all []release, by string) {
	type count struct{ right, held, of int }
	counts := map[string]*count{}
	right, bad := v1alpha1.VerdictFail, by != "variant"
	if !bad {
		right = v1alpha1.VerdictPass
	}
	for _, r := range all {
		if r.bad() != bad {
			continue
		}
		value := r.facts[by]
		if counts[value] == nil {
			counts[value] = &count{}
		}
		c := counts[value]
		c.of++
		switch r.record.Verdict {
		case right:
			c.right++
		case v1alpha1.VerdictNone:
			c.held++
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
	_, _ = fmt.Fprintf(out, "\n%-26s %5s of %3s %5s\n", by, string(right), "all", "held")
	for _, k := range keys {
		_, _ = fmt.Fprintf(out, "%-26s %5d of %3d %5d\n", k, counts[k].right, counts[k].of, counts[k].held)
	}
}
