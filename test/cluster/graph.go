// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// task is one step of "up"; it starts when all tasks in needs are done.
type task struct {
	name  string
	needs []string
	heavy bool          // uses all cores: one heavy task at a time
	takes time.Duration // that of a build on two idle cores; 0 if it is cached
	run   func(context.Context) error
}

// runGraph runs tasks in parallel as their needs allow. The first error cancels
// the rest and is returned. A task must be listed after its needs.
func runGraph(ctx context.Context, p *progress, tasks []task) error {
	if err := checkGraph(tasks); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(map[string]chan struct{}, len(tasks))
	for _, t := range tasks {
		done[t.name] = make(chan struct{})
	}
	p.expect(tasks)
	heavy := make(chan struct{}, 1)
	var wg sync.WaitGroup
	for _, t := range tasks {
		wg.Go(func() {
			for _, need := range t.needs {
				select {
				case <-done[need]:
				case <-ctx.Done():
					return
				}
			}
			if t.heavy {
				select {
				case heavy <- struct{}{}:
					defer func() { <-heavy }()
				case <-ctx.Done():
					return
				}
			}
			if err := p.task(t, func() error { return t.run(ctx) }); err != nil {
				cancel(fmt.Errorf("%s: %w", t.name, err))
				return
			}
			close(done[t.name])
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// checkGraph rejects repeated tasks and needs that are not listed before their
// task, so a graph has no cycle.
func checkGraph(tasks []task) error {
	seen := map[string]bool{}
	for _, t := range tasks {
		if seen[t.name] {
			return fmt.Errorf("task %q appears twice", t.name)
		}
		for _, need := range t.needs {
			if !seen[need] {
				return fmt.Errorf("task %q needs %q, which is not listed before it", t.name, need)
			}
		}
		seen[t.name] = true
	}
	return nil
}

// without removes the named tasks. A task that needs a removed task inherits
// the needs of the removed task.
func without(tasks []task, names ...string) []task {
	var out []task
	left := map[string][]string{}
	for _, t := range tasks {
		var needs []string
		for _, n := range t.needs {
			if inherited, removed := left[n]; removed {
				needs = append(needs, inherited...)
			} else {
				needs = append(needs, n)
			}
		}
		t.needs = needs
		if slices.Contains(names, t.name) {
			left[t.name] = needs
			continue
		}
		out = append(out, t)
	}
	return out
}
