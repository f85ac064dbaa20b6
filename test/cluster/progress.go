// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress prints one line when a step starts and one when it ends, with the time since
// the tool began and the time that the step took.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	now   func() time.Time
	start time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, start: now()}
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "[%6.1fs] %s\n", p.now().Sub(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// step runs f and tells what became of it; a short step prints its end only.
func (p *progress) step(name string, f func() error) error {
	begin := p.now()
	timer := time.AfterFunc(500*time.Millisecond, func() { p.say("…  %s", name) })
	err := f()
	timer.Stop()
	took := p.now().Sub(begin)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // the whole of it ends the program
		p.say("✗  %s (%.1fs): %s", name, took.Seconds(), first)
		return err
	}
	p.say("✓  %s (%.1fs)", name, took.Seconds())
	return nil
}
