// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one long-running part, as written to its pid file. Started is the kernel's
// start time of the pid: a number that was given to another process does not match.
type process struct {
	Name    string   `json:"name"`
	PID     int      `json:"pid"`
	Started string   `json:"started"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // added to the tool's own environment
}

// start runs the process in the namespace and our cgroup, in its own session, writing to
// its own log: it outlives this command and does not see its Ctrl-C.
func (c *cluster) start(ctx context.Context, p process) error {
	for _, f := range []string{c.pidFile(p.Name), c.log(p.Name)} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(c.log(p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	// The shell joins the cgroup before it becomes the process, so no child escapes it.
	wrapped := append([]string{"-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(c.systemCgroup(), "cgroup.procs")}, c.inside(p.Command...)...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", wrapped...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = c.state
	cmd.Env = append(cleanEnv(os.Environ()), p.Env...)
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID = cmd.Process.Pid
	p.Started = startTime(p.PID)
	go func() { _ = cmd.Wait() }() // reap it, if it ends while we still run
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.pidFile(p.Name), data, 0o644)
}

// cleanEnv drops what would change a part's behaviour by accident of the caller's shell.
func cleanEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "KUBECONFIG", strings.HasPrefix(name, "KUBERNETES_"), strings.HasPrefix(name, "ETCD_"),
			strings.HasPrefix(name, "TRAEFIK_"), strings.HasPrefix(name, "KWOK_"),
			strings.HasSuffix(strings.ToLower(name), "_proxy"): // nothing in there can reach a proxy
		default:
			kept = append(kept, e)
		}
	}
	return kept
}

// processes reads all pid files, in order of name.
func (c *cluster) processes() []process {
	files, _ := filepath.Glob(c.in("pid", "*.json"))
	sort.Strings(files)
	var all []process
	for _, f := range files {
		var p process
		data, err := os.ReadFile(f)
		if err == nil && json.Unmarshal(data, &p) == nil {
			all = append(all, p)
		}
	}
	return all
}

func (p process) running() bool {
	return p.PID > 1 && p.Started != "" && startTime(p.PID) == p.Started
}

// check is nil while the named process runs.
func (c *cluster) check(name string) func() error {
	return func() error {
		var p process
		data, err := os.ReadFile(c.pidFile(name))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &p); err != nil {
			return err
		}
		if !p.running() {
			return fmt.Errorf("%s has ended", name)
		}
		return nil
	}
}

// startTime is field 22 of /proc/<pid>/stat, empty when there is no such process or when
// it is a zombie.
func startTime(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	return parseStartTime(string(data))
}

func parseStartTime(stat string) string {
	// The command name, in parentheses, may hold spaces and parentheses itself.
	end := strings.LastIndex(stat, ")")
	if end < 0 {
		return ""
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// killAll ends everything in our cgroup, and the recorded processes should one have left
// it. Kubernetes gets no chance to tidy up: all that it made goes with the state.
func (c *cluster) killAll(ctx context.Context) error {
	return waiting{what: "end of all processes", deadline: 30 * time.Second, every: 50 * time.Millisecond}.until(ctx, func(context.Context) error {
		left := c.cgroupProcesses()
		for _, p := range c.processes() {
			if p.running() {
				left = append(left, p.PID)
			}
		}
		for _, pid := range left {
			_ = signalTo(pid, syscall.SIGKILL)
		}
		if len(left) > 0 {
			return fmt.Errorf("%d left: %v", len(left), left)
		}
		return nil
	})
}

// writeFile writes whole or not at all: a killed tool must not leave half a file.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + partSuffix + strconv.Itoa(os.Getpid())
	if err := writeAlone(temporary, data, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// writeAlone writes a file while no process is started: until it runs its own
// program, a new process has the files open that we write, and what somebody has
// open for writing cannot be executed ("text file busy").
func writeAlone(path string, data []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, mode)
}
