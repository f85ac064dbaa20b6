// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func quiet() *progress { return newProgress(io.Discard, time.Now) }

func TestBringUpListsNeedsBeforeTheirTasks(t *testing.T) {
	if err := checkGraph(testCluster(t).bringUp(1)); err != nil {
		t.Error(err)
	}
}

func TestWithoutKnativeNoTaskNeedsKnative(t *testing.T) {
	all := testCluster(t).bringUp(1)
	rest := without(all, knativeTasks...)
	if err := checkGraph(rest); err != nil {
		t.Error(err)
	}
	if len(rest) != len(all)-len(knativeTasks) {
		t.Errorf("%d of %d tasks are left", len(rest), len(all))
	}
	got := without([]task{{name: "a"}, {name: "b", needs: []string{"a"}}, {name: "c", needs: []string{"b"}}}, "b")
	if len(got) != 2 || !slices.Equal(got[1].needs, []string{"a"}) {
		t.Errorf("got %+v", got)
	}
}

func TestBringUpRecordsHostSettingsFirst(t *testing.T) {
	tasks := testCluster(t).bringUp(1)
	needs := map[string][]string{}
	for _, task := range tasks { // needs are listed first, so their own needs are complete
		for _, n := range task.needs {
			needs[task.name] = append(append(needs[task.name], n), needs[n]...)
		}
	}
	for _, name := range []string{"network namespace", "cgroups", "registry", "containerd", "etcd", "kubelet", "controllers", "ingress"} {
		if !slices.Contains(needs[name], "record host settings") {
			t.Errorf("%q does not need it", name)
		}
	}
}

func TestCheckGraph(t *testing.T) {
	for tc, c := range map[string]struct {
		tasks []task
		want  string
	}{
		"in order": {[]task{{name: "a"}, {name: "b", needs: []string{"a"}}}, ""},
		"unknown":  {[]task{{name: "a", needs: []string{"x"}}}, "not listed before"},
		"later":    {[]task{{name: "a", needs: []string{"b"}}, {name: "b"}}, "not listed before"},
		"itself":   {[]task{{name: "a", needs: []string{"a"}}}, "not listed before"},
		"twice":    {[]task{{name: "a"}, {name: "a"}}, "appears twice"},
	} {
		err := checkGraph(c.tasks)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", tc, err, c.want)
		}
	}
}

func TestATaskStartsWhenAllItsNeedsAreDone(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(name string, needs ...string) task {
		return task{name: name, needs: needs, run: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}}
	}
	tasks := []task{note("a"), note("b", "a"), note("c", "a"), note("d", "b", "c")}
	if err := runGraph(context.Background(), quiet(), tasks); err != nil {
		t.Fatal(err)
	}
	if len(order) != 4 || order[0] != "a" || order[3] != "d" {
		t.Error(order)
	}
}

func TestHeavyTasksRunOneAtATime(t *testing.T) {
	var now, most atomic.Int32
	var tasks []task
	for _, name := range []string{"a", "b", "c"} {
		tasks = append(tasks, task{name: name, heavy: true, run: func(context.Context) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Millisecond) // time for another task to start
			now.Add(-1)
			return nil
		}})
	}
	if err := runGraph(context.Background(), quiet(), tasks); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 1 {
		t.Errorf("%d at a time", most.Load())
	}
}

func TestTheFirstErrorCancelsTheRestAndIsReturned(t *testing.T) {
	broken := errors.New("broken")
	tasks := []task{
		{name: "waits", run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{name: "fails", run: func(context.Context) error { return broken }},
		{name: "never", needs: []string{"fails"}, run: func(context.Context) error { t.Error("it ran"); return nil }},
	}
	err := runGraph(context.Background(), quiet(), tasks)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "fails:") {
		t.Error(err)
	}
}
