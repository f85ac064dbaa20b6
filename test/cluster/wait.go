// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// waiting describes a wait so that its failure tells what was missing and where to look.
type waiting struct {
	what     string
	log      string // file to read when it does not come
	deadline time.Duration
	every    time.Duration // 100 ms when zero
	alive    func() error  // ends the wait early, when the process that it waits for is gone
}

// until polls check until it returns nil.
func (w waiting) until(ctx context.Context, check func(context.Context) error) error {
	if w.every == 0 {
		w.every = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, w.deadline)
	defer cancel()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // the deadline's own error explains nothing
			last = err
		}
		if w.alive != nil {
			if err := w.alive(); err != nil {
				return fmt.Errorf("waiting for %s: %w%s", w.what, err, w.where())
			}
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("waiting for %s: %w", w.what, cause)
			}
			return fmt.Errorf("no %s within %s: %w%s", w.what, w.deadline, last, w.where())
		case <-tick.C:
		}
	}
}

func (w waiting) where() string {
	if w.log == "" {
		return ""
	}
	return fmt.Sprintf("\n  log: %s\n%s", w.log, tail(w.log, 8))
}

// tail returns the last lines of a file, indented, for an error message.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	const most = 16 << 10
	if len(data) > most {
		data = data[len(data)-most:]
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "    | " + strings.Join(all, "\n    | ")
}
