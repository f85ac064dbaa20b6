package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// reports are the results of several runs.
type reports []report

// runSuites runs the suite as often as the options say. Each run has an order and an
// endpoint of its own, because a server may call back late.
func runSuites(ctx context.Context, listener net.Listener, o options) reports {
	var callbacks atomic.Pointer[endpoint]
	callbacks.Store(newEndpoint(o.config))
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+callbackPath, func(w http.ResponseWriter, r *http.Request) { callbacks.Load().ServeHTTP(w, r) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer func() { _ = server.Close() }()
	var out reports
	for len(out) < o.runs && (len(out) == 0 || ctx.Err() == nil) {
		of := newEndpoint(o.config)
		callbacks.Store(of)
		s := newSuite(o.config, of, o.wait, o.lateWait)
		out = append(out, s.evaluate(ctx, s.try(ctx)))
	}
	return out
}

// count is how often something happened, and an example of it.
type count struct {
	text    string
	times   int
	example string
}

// counter counts texts in the order in which they first appear.
type counter struct{ counts []count }

func (c *counter) add(text, example string) {
	i := slices.IndexFunc(c.counts, func(n count) bool { return n.text == text })
	if i < 0 {
		c.counts, i = append(c.counts, count{text: text, example: example}), len(c.counts)
	}
	c.counts[i].times++
}

// print writes a single report as text. Of several reports it writes how often each
// result occurred.
func (r reports) print(to io.Writer) error {
	if len(r) == 1 {
		return r[0].print(to)
	}
	var statements, checks, outcomes counter
	for _, one := range r {
		for _, c := range one.results {
			if c.err == nil {
				statements.add("ok\t"+c.statement, "")
			} else {
				statements.add(c.label()+"\t"+c.statement, ": "+oneLine(c.err))
			}
		}
		for _, s := range one.stages {
			checks.add(s.name+"\t"+s.received+"\t"+s.retrieve, "")
		}
		for _, o := range one.outcomes {
			outcomes.add(o.pod+"\t"+string(o.outcome), "")
		}
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		head string
		counter
	}{{"RESULT\tSTATEMENT", statements}, {"CHECK\tCALLBACKS\tRETRIEVE", checks}, {"POD\tOUTCOME", outcomes}} {
		_, _ = fmt.Fprintf(table, "TIMES\t%s\n", part.head) // Flush has the error
		for _, c := range part.counts {
			_, _ = fmt.Fprintf(table, "%d\t%s%s\n", c.times, c.text, c.example)
		}
		_, _ = fmt.Fprintln(table)
	}
	_, _ = fmt.Fprintf(table, "%d runs.\n", len(r))
	return table.Flush()
}

// code returns the exit code. If the code is not conforms, it also returns the reason.
func (r reports) code(o options) (code int, reason string) {
	for _, one := range r {
		if code, reason := one.code(o); code != conforms {
			return code, reason
		}
	}
	return conforms, ""
}
