package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// pace is how long a person gets to read what came back.
const pace = 1500 * time.Millisecond

// teller shows what is said, what is typed and what comes back.
type teller struct {
	out *os.File
	// pause is 0 where nobody reads along.
	pause   time.Duration
	bold    string
	plain   string
	chapter int
}

func newTeller(out *os.File, fast bool) *teller {
	t := &teller{out: out}
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return t
	}
	t.bold, t.plain = "\x1b[1m", "\x1b[0m"
	if !fast {
		t.pause = pace
	}
	return t
}

// title begins a chapter.
func (t *teller) title(text string) {
	t.chapter++
	t.print("\n%s%d. %s%s\n", t.bold, t.chapter, text, t.plain)
}

// say says something in plain words.
func (t *teller) say(text string) { t.print("\n%s\n", text) }

func (t *teller) print(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...) // nobody is there to be told
}

// kubectl types a command, runs it and shows what came back. It has to succeed.
func (t *teller) kubectl(ctx context.Context, args ...string) (kubectl.Result, error) {
	r, err := t.try(ctx, args...)
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("kubectl %s ended with exit code %d: %s", strings.Join(args, " "), r.Code, r.Stderr)
	}
	return r, err
}

// try is kubectl, however the command ends.
func (t *teller) try(ctx context.Context, args ...string) (kubectl.Result, error) {
	t.print("\n%s$ kubectl %s%s\n", t.bold, typed(args), t.plain)
	r, err := kubectl.Kubectl{}.Run(ctx, args...)
	if err != nil {
		return r, err
	}
	t.print("%s%s", r.Stdout, r.Stderr)
	return r, t.rest(ctx)
}

// rest gives a person time to read.
func (t *teller) rest(ctx context.Context) error {
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// typed writes arguments as a person types them into a shell.
func typed(args []string) string {
	harmless := regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if !harmless.MatchString(arg) {
			out[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
