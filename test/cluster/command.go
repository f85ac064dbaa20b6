// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// run runs a short command and returns its output; an error includes the last
// lines of stderr.
func run(ctx context.Context, name string, args ...string) (string, error) {
	return runWith(ctx, nil, nil, name, args...)
}

// runWith interrupts the command when the context or this process ends, so that
// a compiler removes its temporary files. A command that ignores the interrupt
// is killed.
func runWith(ctx context.Context, env []string, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = env, stdin
	cmd.SysProcAttr = interruptedWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(firstArgs(args), " "), err, lastLines(errs.String(), 12))
	}
	return out.String(), nil
}

func firstArgs(args []string) []string {
	if len(args) > 6 {
		return append(append([]string{}, args[:6]...), "…")
	}
	return args
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
