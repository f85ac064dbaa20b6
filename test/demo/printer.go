package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// pace is the pause after each output, for the reader.
const pace = 1500 * time.Millisecond

// printer prints explanations, commands and their output.
type printer struct {
	out io.Writer
	// pause is 0 if the output is not a terminal.
	pause time.Duration
	bold  string
	plain string
	step  int
}

func newPrinter(out *os.File, fast bool) *printer {
	p := &printer{out: out}
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return p
	}
	p.bold, p.plain = "\x1b[1m", "\x1b[0m"
	if !fast {
		p.pause = pace
	}
	return p
}

// recordingPrinter also writes to a recording, with the bold text and the pauses of a
// terminal.
func recordingPrinter(out *os.File, recording io.Writer, fast bool) *printer {
	p := newPrinter(out, fast)
	p.out = io.MultiWriter(out, recording)
	p.bold, p.plain, p.pause = "\x1b[1m", "\x1b[0m", pace
	return p
}

// title prints the title of a step.
func (p *printer) title(text string) {
	p.step++
	p.print("\n%s%d. %s%s\n", p.bold, p.step, text, p.plain)
}

// explain prints a paragraph of text.
func (p *printer) explain(text string) { p.print("\n%s\n", text) }

func (p *printer) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...) // an output error cannot be reported
}

// kubectl prints and runs a command and prints its output. It returns an error
// if the command fails.
func (p *printer) kubectl(ctx context.Context, args ...string) (kubectl.Result, error) {
	r, err := p.try(ctx, args...)
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("kubectl %s ended with exit code %d: %s", strings.Join(args, " "), r.Code, r.Stderr)
	}
	return r, err
}

// try is like kubectl, but the command may fail.
func (p *printer) try(ctx context.Context, args ...string) (kubectl.Result, error) {
	p.print("\n%s$ kubectl %s%s\n", p.bold, shellQuote(args), p.plain)
	r, err := kubectl.Kubectl{}.Run(ctx, args...)
	if err != nil {
		return r, err
	}
	p.print("%s%s", r.Stdout, r.Stderr)
	return r, p.waitForReader(ctx)
}

// waitForReader waits for the pause.
func (p *printer) waitForReader(ctx context.Context) error {
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shellQuote joins arguments and quotes them for a shell.
func shellQuote(args []string) string {
	unquoted := regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if !unquoted.MatchString(arg) {
			out[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
