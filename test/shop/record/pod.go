// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The rules by which a kubelet runs a pod, with shorter times.
const (
	memoryLimit    = 64 << 20 // bytes; a process that uses more is killed
	firstBackoff   = 10 * time.Second
	lastBackoff    = 5 * time.Minute
	resetBackoff   = 10 * time.Minute
	terminateGrace = 8 * time.Second
	clockTick      = 100 // ticks per second of /proc/PID/stat
)

// pod is one process that is run as a kubelet runs a pod: it is probed,
// restarted after an exit with an increasing back-off, and killed when it uses
// too much memory.
type pod struct {
	namespace, name, service, version, node, ip string
	program                                     string
	args                                        []string
	// hidden pods are never endpoints, even if they are Ready.
	hidden bool

	mu       sync.Mutex
	process  *os.Process
	started  time.Time
	ready    bool
	wasReady time.Time // time of the first Ready
	restarts int
	waiting  string // why no process runs: ContainerCreating, CrashLoopBackOff
	ended    string // why the last process ended: Error, OOMKilled
	oom      int
	removed  bool
}

// run starts the process again and again until the context ends.
func (p *pod) run(ctx context.Context) {
	backoff := firstBackoff
	for {
		begin := time.Now()
		reason := p.runOnce(ctx)
		if ctx.Err() != nil {
			p.locked(func() { p.removed = true })
			return
		}
		if time.Since(begin) > resetBackoff {
			backoff = firstBackoff
		}
		p.locked(func() { p.waiting, p.ended = "CrashLoopBackOff", reason })
		select {
		case <-ctx.Done():
			p.locked(func() { p.removed = true })
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
		p.locked(func() { p.restarts++ })
	}
}

func (p *pod) runOnce(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, p.program, p.args...)
	cmd.Cancel = func() error {
		return errors.Join(cmd.Process.Signal(syscall.SIGCONT), cmd.Process.Signal(syscall.SIGTERM))
	}
	cmd.WaitDelay = terminateGrace
	if err := cmd.Start(); err != nil {
		return "StartError"
	}
	oomBefore := 0
	p.locked(func() { p.process, p.started, p.waiting, oomBefore = cmd.Process, time.Now(), "", p.oom })
	_ = cmd.Wait()
	reason := "Error"
	p.locked(func() {
		p.process, p.ready = nil, false
		if p.oom > oomBefore {
			reason = "OOMKilled"
		}
	})
	return reason
}

// locked reads or changes the pod.
func (p *pod) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// probe asks the process whether it is ready, and kills it when it uses more
// memory than its limit. It returns whether readiness changed.
func (p *pod) probe(ctx context.Context, client *http.Client) bool {
	ok := p.answersReady(ctx, client)
	p.mu.Lock()
	defer p.mu.Unlock()
	ok = ok && p.process != nil
	changed := p.ready != ok
	p.ready = ok
	if ok && p.wasReady.IsZero() {
		p.wasReady = time.Now()
	}
	if p.process != nil && memory(p.process.Pid) > memoryLimit {
		p.oom++
		_ = p.process.Kill()
	}
	return changed
}

func (p *pod) answersReady(ctx context.Context, client *http.Client) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.ip+":8080/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// signal sends a signal to the process, if it runs.
func (p *pod) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		_ = p.process.Signal(s)
	}
}

// memory is the resident memory of a process in bytes.
func memory(pid int) int {
	fields := procFields(pid, "statm")
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}

// cpuSeconds is the CPU time of a process in seconds.
func cpuSeconds(pid int) float64 {
	fields := procFields(pid, "stat")
	if len(fields) < 15 {
		return 0
	}
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return float64(user+system) / clockTick
}

func procFields(pid int, file string) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
