// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress prints a line when a step starts and when it ends, with the time
// since the start of the tool and the duration of the step.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	now   func() time.Time
	start time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, start: now()}
}

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "[%6.1fs] %s\n", p.now().Sub(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// step runs f and prints its result; a short step prints only its end.
func (p *progress) step(name string, f func() error) error {
	begin := p.now()
	timer := time.AfterFunc(500*time.Millisecond, func() { p.printf("…  %s", name) })
	err := f()
	timer.Stop()
	took := p.now().Sub(begin)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // main prints the whole error
		p.printf("✗  %s (%.1fs): %s", name, took.Seconds(), first)
		return err
	}
	p.printf("✓  %s (%.1fs)", name, took.Seconds())
	return nil
}
