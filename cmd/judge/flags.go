package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/httptransport"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
)

// maxFile is the largest file that is read.
const maxFile = 64 << 20

// prometheusFlags has the values of the flags that select a Prometheus server.
type prometheusFlags struct {
	address string
	headers []string // as on the command line
	timeout time.Duration
}

func newFlags(name string, errs io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("judge "+name, flag.ContinueOnError)
	flags.SetOutput(errs)
	return flags
}

func (s *prometheusFlags) flags(flags *flag.FlagSet) {
	flags.StringVar(&s.address, "prometheus", "", "`URL` of Prometheus, for example http://127.0.0.1:9090")
	// Package flag would print a value that is an error here, and it may be a credential.
	flags.Func("header", "`header` of queries, for example 'X-Scope-OrgID: team-a'; repeat it for several", func(text string) error {
		s.headers = append(s.headers, text)
		return nil
	})
	flags.DurationVar(&s.timeout, "timeout", prometheus.DefaultTimeout, "longest time of one query")
}

func (s *prometheusFlags) client() (*prometheus.Client, error) {
	if strings.Contains(strings.Join(s.headers, "\n"), "{{") {
		return nil, errors.New("--header: write the namespace itself; {{namespace}} is for config-judge")
	}
	headers, err := prometheus.ParseHeaders(strings.Join(s.headers, "\n"))
	if err != nil {
		return nil, fmt.Errorf("--header: %w", err)
	}
	if s.timeout <= 0 {
		return nil, fmt.Errorf("--timeout is %s, want a positive duration", s.timeout)
	}
	client, err := prometheus.New(s.address, s.timeout, prometheus.WithHeaders(headers, httptransport.New()))
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w; percent-encode the special characters of user and password", err)
	}
	return client, nil
}

// intervalFlag adds the flag with the time between two looks at a past release.
func intervalFlag(flags *flag.FlagSet) *time.Duration {
	interval := judge.LookInterval
	flags.Func("interval", "`time` between two looks at a release, at least 5s; default: "+interval.String(), func(text string) (err error) {
		if interval, err = time.ParseDuration(text); err == nil && interval < 5*time.Second {
			return errors.New("want at least 5s")
		}
		return err
	})
	return &interval
}

// parse parses the flags; arguments that are no flags are an error.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

// checkOf reads a MetricCheck; without a file it is the default one.
func checkOf(path string) (v1alpha1.MetricCheckSpec, error) {
	if path == "" {
		return v1alpha1.MetricCheckSpec{}, nil
	}
	text, err := readFile(path)
	if err != nil {
		return v1alpha1.MetricCheckSpec{}, err
	}
	check, err := judge.ParseCheck(text)
	if err != nil {
		return check, fmt.Errorf("%s: %w", path, err)
	}
	return check, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d MiB", path, maxFile>>20)
	}
	return text, err
}

// targetOf checks the matchers and the time of a change.
func targetOf(newPods, oldPods, at string) (v1alpha1.Target, error) {
	for flag, matcher := range map[string]string{"new": newPods, "old": oldPods} {
		parsed, err := prometheus.ParseMatchers(matcher)
		if err != nil {
			return v1alpha1.Target{}, fmt.Errorf("%s: %w", flag, err)
		}
		if flag == "new" && len(parsed) == 0 {
			return v1alpha1.Target{}, errors.New("new: the matcher of the new pods is required")
		}
	}
	t, err := judge.ParseTime(at)
	if err != nil {
		return v1alpha1.Target{}, fmt.Errorf("at: %w", err)
	}
	return v1alpha1.Target{New: newPods, Old: oldPods, StartTime: metav1.NewTime(t.Truncate(time.Second))}, nil
}
