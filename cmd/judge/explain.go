package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge"
)

// explain recomputes a record from the metrics and prints both results.
func explain(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	flags := newFlags("explain", errs)
	var from prometheusFlags
	from.flags(flags)
	path := flags.String("record", "", "`file` with a record: the output of judge replay, or status.metricRecord or status.probation of a ChangePod")
	file := flags.String("check", "", "`file` with the MetricCheck of the record; default: the default metrics")
	if err := parse(flags, args); err != nil {
		return exitError, err
	}
	client, err := from.client()
	if err != nil {
		return exitError, err
	}
	text, err := readFile(*path)
	if err != nil {
		return exitError, fmt.Errorf("--record: %w", err)
	}
	var record v1alpha1.Record
	if err := json.Unmarshal(text, &record); err != nil {
		return exitError, fmt.Errorf("--record %s: %w", *path, err)
	}
	if record.Target.New == "" || record.Target.StartTime.IsZero() {
		return exitError, fmt.Errorf("--record %s: the record has no target", *path)
	}
	check, err := checkOf(*file)
	if err != nil {
		return exitError, err
	}
	again := judge.Recompute(ctx, client, check, record)
	_, _ = fmt.Fprintf(out, "recorded:   %s, %s at %s\n            %s\n", record.Verdict, record.Reason, record.LookTime.UTC().Format(time.RFC3339), record.Message)
	_, _ = fmt.Fprintf(out, "recomputed: %s, %s\n            %s\n", again.Verdict, again.Reason, again.Message)
	for _, line := range judge.Differences(record, again) {
		_, _ = fmt.Fprintf(out, "differs:    %s\n", line)
	}
	for _, e := range again.Metrics {
		_, _ = fmt.Fprintf(out, "\n%s (%s): %s, %s\n  %s\n", e.Name, e.Kind, e.Verdict, e.Reason, e.Message)
		if e.EValue != "" {
			_, _ = fmt.Fprintf(out, "  e-value %s, a fail needs %s\n", e.EValue, e.Threshold)
		}
		for _, side := range []struct {
			name string
			side *v1alpha1.Side
		}{{"new", e.New}, {"old", e.Old}} {
			if s := side.side; s != nil {
				_, _ = fmt.Fprintf(out, "  %s: %s of %d samples of %d pods, %s to %s\n       %s\n", side.name, s.Value, s.Samples, s.Pods,
					s.From.UTC().Format(time.RFC3339), s.To.UTC().Format(time.RFC3339), s.Query)
			}
		}
	}
	if again.Verdict != record.Verdict || again.Reason != record.Reason {
		_, _ = fmt.Fprintln(out, "\nThe recomputed verdict does not agree.")
		return exitFail, nil
	}
	_, _ = fmt.Fprintln(out, "\nThe recomputed verdict agrees.")
	return exitPass, nil
}
