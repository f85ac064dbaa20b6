package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge"
)

// replay judges one past release and prints its record.
func replay(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	flags := newFlags("replay", errs)
	var from prometheusFlags
	from.flags(flags)
	newPods := flags.String("new", "", "`matcher` of the new pods: what stands between the braces of a selector, for example 'version=\"v2\"'")
	oldPods := flags.String("old", "", "`matcher` of the old pods; empty: the new matcher, before --at")
	at := flags.String("at", "", "`time` at which the first new pod became Ready: RFC 3339 or Unix seconds")
	file := flags.String("check", "", "`file` with a MetricCheck; default: the default metrics")
	interval := intervalFlag(flags)
	if err := parse(flags, args); err != nil {
		return exitError, err
	}
	client, err := from.client()
	if err != nil {
		return exitError, err
	}
	target, err := targetOf(*newPods, *oldPods, *at)
	if err != nil {
		return exitError, err
	}
	check, err := checkOf(*file)
	if err != nil {
		return exitError, err
	}
	record := judge.EvaluateLooks(judge.Read(ctx, client, check, target), *interval)
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return exitError, err
	}
	return exitOf(record.Verdict), nil
}

func exitOf(v v1alpha1.Verdict) int {
	switch v {
	case v1alpha1.VerdictPass:
		return exitPass
	case v1alpha1.VerdictFail:
		return exitFail
	default:
		return exitNoVerdict
	}
}
