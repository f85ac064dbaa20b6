package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The exit codes of the command.
const (
	conforms = 0
	deviates = 1
	untested = 2
)

// callbackPath is the path of function callback.
const callbackPath = "/openapi/altershield/callback"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	config         altershield.Config
	listen         string
	expect         string
	strict         bool
	wait, lateWait time.Duration
	// runs is the number of runs.
	runs int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return untested
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "serve callbacks:", err)
		return untested
	}
	_, _ = fmt.Fprintf(stderr, "listening for callbacks at http://%s%s\n", listener.Addr(), callbackPath)
	results := runSuites(ctx, listener, o)
	if err := results.print(stdout); err != nil {
		return untested
	}
	code, reason := results.code(o)
	if reason != "" {
		_, _ = fmt.Fprintln(stderr, reason)
	}
	return code
}

// code returns the exit code. If the code is not conforms and the output does not say why,
// it also returns the reason.
func (r report) code(o options) (code int, reason string) {
	switch {
	case len(r.outcomes) == 0:
		return deviates, "no batch was started: the outcomes were not tested"
	case len(r.failed(required)) > 0, o.strict && len(r.failed(published)) > 0:
		return deviates, ""
	case o.expect != "" && !r.counts(v1alpha1.Outcome(o.expect)):
		return deviates, "not every pod has outcome " + o.expect
	}
	return conforms, ""
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.config.BaseURL, "url", "", "URL of the server, without /openapi (required)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:9099", "address for callbacks; configure the server with callback URL http://<address>"+callbackPath)
	f.StringVar(&o.config.Platform, "platform", "breakwater", "platform name at the server")
	tokenFile := f.String("token-file", "", "file with the token that signs calls (default: environment variable ALTERSHIELD_TOKEN)")
	f.StringVar(&o.config.TenantCode, "tenant-code", "conformance", "tenant code at the server")
	f.StringVar(&o.config.ChangeSceneKey, "change-scene-key", "breakwater", "change scene with the callback URL of -listen")
	f.StringVar(&o.config.HeaderPrefix, "header-prefix", altershield.DefaultHeaderPrefix, "prefix of the signature headers")
	f.StringVar(&o.expect, "expect", "", "expected outcome of every pod: Pass, Fail or NoVerdict (default: any)")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 also for a note")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "maximum time until a callback")
	f.DurationVar(&o.lateWait, "late-wait", 2*time.Second, "time to wait for late and repeated callbacks at the end")
	f.IntVar(&o.runs, "runs", 1, "number of runs; with more than one, the output is how often what happened")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	token, err := tokenOf(*tokenFile)
	if err != nil {
		return o, err
	}
	o.config.Token = token
	// The test is not rate limited.
	o.config.QPS, o.config.Burst, o.config.BreakerFailures = 1000, 1000, 1000
	switch {
	case o.config.BaseURL == "":
		return o, fmt.Errorf("-url is missing: set the URL of the server")
	case o.runs < 1:
		return o, fmt.Errorf("invalid -runs %d: at least 1", o.runs)
	case token == "":
		return o, fmt.Errorf("token is missing: set -token-file or ALTERSHIELD_TOKEN")
	case o.expect != "" && o.expect != string(v1alpha1.OutcomePass) && o.expect != string(v1alpha1.OutcomeFail) && o.expect != string(v1alpha1.OutcomeNoVerdict):
		return o, fmt.Errorf("invalid -expect %q: use Pass, Fail or NoVerdict", o.expect)
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
