package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// Sequences of a terminal that begin and end bold text.
const boldOn, boldOff = "\x1b[1m", "\x1b[0m"

// The pause after each output, for the reader, is pace and linePace for each line since the pause before.
const (
	pace     = time.Second
	linePace = 120 * time.Millisecond
)

// printer prints explanations, commands and their output.
type printer struct {
	out io.Writer
	// pauses is whether a person reads: the output is a terminal or recorded.
	pauses bool
	// lines is the number of lines since the last pause.
	lines int
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
	p.bold, p.plain = boldOn, boldOff
	p.pauses = !fast
	return p
}

// recordingPrinter also writes to a recording, with the bold text and the pauses of a
// terminal.
func recordingPrinter(out *os.File, recording io.Writer, fast bool) *printer {
	p := newPrinter(out, fast)
	p.out = io.MultiWriter(out, recording)
	p.bold, p.plain, p.pauses = boldOn, boldOff, true
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
	text := fmt.Sprintf(format, args...)
	p.lines += strings.Count(text, "\n")
	_, _ = io.WriteString(p.out, text) // an output error cannot be reported
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
	p.printCommand(args)
	r, err := kubectl.Kubectl{}.Run(ctx, args...)
	if err != nil {
		return r, err
	}
	// Progress and warnings are on stderr, and come before the result.
	p.print("%s%s", r.Stderr, r.Stdout)
	return r, p.waitForReader(ctx)
}

// tryInOrder is like try, but prints stdout and stderr in the order in which kubectl writes them, and returns
// them together with the exit code.
func (p *printer) tryInOrder(ctx context.Context, args ...string) (output string, code int, err error) {
	p.printCommand(args)
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return "", 0, fmt.Errorf("run kubectl %s: %w", strings.Join(args, " "), err)
	}
	p.print("%s", out)
	return string(out), cmd.ProcessState.ExitCode(), p.waitForReader(ctx)
}

func (p *printer) printCommand(args []string) {
	p.print("\n%s$ kubectl %s%s\n", p.bold, shellQuote(args), p.plain)
}

// waitForReader waits until a person has read the lines since the last pause.
func (p *printer) waitForReader(ctx context.Context) error {
	if !p.pauses {
		return ctx.Err()
	}
	timer := time.NewTimer(pace + time.Duration(p.lines)*linePace)
	defer timer.Stop()
	p.lines = 0
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shellQuote joins arguments and quotes them for a shell.
func shellQuote(args []string) string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = text.ShellQuote(arg)
	}
	return strings.Join(out, " ")
}
