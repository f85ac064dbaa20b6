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

// process is one long-running process, as written to its pid file. Started is
// the kernel's start time of the process, so a reused pid does not match.
type process struct {
	Name    string   `json:"name"`
	PID     int      `json:"pid"`
	Started string   `json:"started"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // added to the tool's environment
}

// start runs the process in the namespace and our cgroup, with its own session
// and log. It outlives this command and does not receive its Ctrl-C.
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
	command, attributes := p.Command, endedWithParent()
	if !c.controlPlaneOnly {
		// The shell joins the cgroups before exec, so no child is outside them.
		join := ""
		for _, dir := range c.systemCgroups() {
			join += "echo $$ > '" + filepath.Join(dir, "cgroup.procs") + "' && "
		}
		command = append([]string{"/bin/sh", "-c", join + `exec "$@"`, "sh"}, c.inside(p.Command...)...)
		attributes = ownSession()
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = c.state
	cmd.Env = append(cleanEnv(os.Environ()), p.Env...)
	cmd.SysProcAttr = attributes
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID = cmd.Process.Pid
	p.Started = startTime(p.PID)
	go func() { _ = cmd.Wait() }() // reap it if it ends before this command
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.pidFile(p.Name), data, 0o644)
}

// cleanEnv removes variables of the caller's shell that would change a
// process's behavior.
func cleanEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "KUBECONFIG", strings.HasPrefix(name, "KUBERNETES_"), strings.HasPrefix(name, "ETCD_"),
			strings.HasPrefix(name, "TRAEFIK_"), strings.HasPrefix(name, "KWOK_"),
			strings.HasSuffix(strings.ToLower(name), "_proxy"): // the namespace cannot reach a proxy
		default:
			kept = append(kept, e)
		}
	}
	return kept
}

// processes reads all pid files, sorted by name.
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

// check returns a function that returns nil while the named process is running.
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
			return fmt.Errorf("%s is not running", name)
		}
		return nil
	}
}

// startTime returns field 22 of /proc/<pid>/stat. It is empty if the process
// does not exist or is a zombie.
func startTime(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	return parseStartTime(string(data))
}

func parseStartTime(stat string) string {
	// The command name is in parentheses and may contain spaces and parentheses.
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

// killAll kills all processes in our cgroup, and the recorded processes in case
// one has left it. Kubernetes does not shut down cleanly, because "down"
// deletes all its data.
func (c *cluster) killAll(ctx context.Context) error {
	return waiting{what: "all processes to end", deadline: 30 * time.Second, every: 50 * time.Millisecond}.until(ctx, func(context.Context) error {
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
			return fmt.Errorf("%d are running: %v", len(left), left)
		}
		return nil
	})
}

// writeFile writes the file atomically: a killed tool must not leave an
// incomplete file.
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

// writeAlone writes an executable while no process is being started. Between
// fork and exec a new process inherits our open files, and a file that is open
// for writing cannot be executed ("text file busy").
func writeAlone(path string, data []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, mode)
}
