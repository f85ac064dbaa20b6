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

// waiting describes a wait. Its error contains the missing condition and the
// end of a log.
type waiting struct {
	what     string
	log      string // file whose end the error shows
	deadline time.Duration
	every    time.Duration // 100 ms when zero
	alive    func() error  // an error ends the wait early, for example if the process has ended
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
		if last == nil || ctx.Err() == nil { // keep the cause, not the error of the deadline
			last = err
		}
		if w.alive != nil {
			if err := w.alive(); err != nil {
				return fmt.Errorf("wait for %s: %w%s", w.what, err, w.where())
			}
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("wait for %s: %w", w.what, cause)
			}
			return fmt.Errorf("timed out after %s waiting for %s: %w%s", w.deadline, w.what, last, w.where())
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

// tail returns the last lines of a file, indented for an error message.
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
