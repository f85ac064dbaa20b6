package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The ends of the command.
const (
	conforms = 0
	deviates = 1
	untried  = 2
)

// callbackPath is where the real callback listens.
const callbackPath = "/openapi/altershield/callback"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	config       altershield.Config
	listen       string
	expect       string
	strict       bool
	wait, linger time.Duration
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err) // nothing else can be told
		return untried
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "serve callbacks:", err)
		return untried
	}
	_, _ = fmt.Fprintf(stderr, "callbacks are expected at http://%s%s\n", listener.Addr(), callbackPath)
	result := judged(ctx, listener, o)
	if err := result.print(stdout); err != nil {
		return untried
	}
	switch {
	case len(result.outcomes) == 0:
		_, _ = fmt.Fprintln(stderr, "no batch could be started: the truth table was not tried")
		return deviates
	case len(result.failed(required)) > 0, o.strict && len(result.failed(published)) > 0:
		return deviates
	case o.expect != "" && !result.counts(v1alpha1.Outcome(o.expect)):
		_, _ = fmt.Fprintf(stderr, "not every pod counts as %s\n", o.expect)
		return deviates
	}
	return conforms
}

// judged tries the judge once.
func judged(ctx context.Context, listener net.Listener, o options) report {
	came := newEndpoint(o.config)
	mux := http.NewServeMux()
	mux.Handle("POST "+callbackPath, came)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer func() { _ = server.Close() }()
	s := newSide(o.config, came, o.wait, o.linger)
	return s.conclude(ctx, s.try(ctx))
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.config.BaseURL, "url", "", "the judge, without /openapi (required)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:9099", "where callbacks are served; the judge has to be told http://<this>"+callbackPath)
	f.StringVar(&o.config.Platform, "platform", "breakwater", "our name at the judge")
	tokenFile := f.String("token-file", "", "a file with the token that signs; default the environment's ALTERSHIELD_TOKEN")
	f.StringVar(&o.config.TenantCode, "tenant-code", "conformance", "our tenant at the judge")
	f.StringVar(&o.config.ChangeSceneKey, "change-scene-key", "breakwater", "the change scene; its callback URL has to be ours")
	f.StringVar(&o.config.HeaderPrefix, "header-prefix", altershield.DefaultHeaderPrefix, "begins the signature headers")
	f.StringVar(&o.expect, "expect", "", "what every pod has to count as: Pass, Fail or NoVerdict; default: anything")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 also for what only the published server does")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "how long a callback may take")
	f.DurationVar(&o.linger, "linger", 2*time.Second, "how long late and doubled callbacks are waited for at the end")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	token, err := tokenOf(*tokenFile)
	if err != nil {
		return o, err
	}
	o.config.Token = token
	// The judge is tried, not spared.
	o.config.QPS, o.config.Burst, o.config.BreakerFailures = 1000, 1000, 1000
	switch {
	case o.config.BaseURL == "":
		return o, fmt.Errorf("-url is missing: name the judge")
	case token == "":
		return o, fmt.Errorf("there is no token: set -token-file or ALTERSHIELD_TOKEN")
	case o.expect != "" && o.expect != string(v1alpha1.OutcomePass) && o.expect != string(v1alpha1.OutcomeFail) && o.expect != string(v1alpha1.OutcomeNoVerdict):
		return o, fmt.Errorf("-expect is %q: use Pass, Fail or NoVerdict", o.expect)
	}
	return o, nil
}

func tokenOf(file string) (string, error) {
	if file == "" {
		return os.Getenv("ALTERSHIELD_TOKEN"), nil
	}
	raw, err := os.ReadFile(file)
	return strings.TrimSpace(string(raw)), err
}
