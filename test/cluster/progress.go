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
	// expected is the duration of all builds, built the duration of the ended ones.
	expected, built time.Duration
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, start: now()}
}

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "[%6.1fs] %s\n", p.now().Sub(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// task runs f, a task of "up", and prints its result.
func (p *progress) task(t task, f func() error) error {
	if t.takes > 0 {
		return p.build(t.name, t.takes, f)
	}
	return p.step(t.name, f)
}

// step runs f and prints its result; a short step prints only its end.
func (p *progress) step(name string, f func() error) error {
	begin := p.now()
	timer := time.AfterFunc(500*time.Millisecond, func() { p.printf("…  %s", name) })
	err := f()
	timer.Stop()
	return p.end(name, begin, err)
}

// end prints the result of a step.
func (p *progress) end(name string, begin time.Time, err error) error {
	took := p.now().Sub(begin)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // main prints the whole error
		p.printf("✗  %s (%.1fs): %s", name, took.Seconds(), first)
		return err
	}
	p.printf("✓  %s (%.1fs)", name, took.Seconds())
	return nil
}

// expect prints how long the builds of the tasks will take.
func (p *progress) expect(tasks []task) {
	var names []string
	for _, t := range tasks {
		if t.takes > 0 {
			names = append(names, strings.TrimPrefix(t.name, "build "))
			p.expected += t.takes
		}
	}
	if len(names) > 0 {
		p.printf("   builds what is not cached, about %s on two idle cores: %s", minutes(p.expected), strings.Join(names, ", "))
	}
}

// build is step for a build: it prints how long it will take, its share of all builds,
// and every minute how long it has run.
func (p *progress) build(name string, takes time.Duration, f func() error) error {
	begin := p.now()
	p.printf("…  %s: about %s, %d %% of all builds", name, minutes(takes), p.percent(takes))
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		every := time.NewTicker(time.Minute)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				p.printf("…  %s: %d of about %s", name, int(p.now().Sub(begin).Round(time.Minute).Minutes()), minutes(takes))
			case <-ended:
				return
			}
		}
	}()
	err := p.end(name, begin, f())
	if err == nil {
		p.built += takes // one build runs at a time
		p.printf("   %d %% of all builds done", p.percent(p.built))
	}
	return err
}

func (p *progress) percent(of time.Duration) int { return int(100 * of / p.expected) }

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d min", int(max(1, d.Round(time.Minute).Minutes())))
}
