// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests run the whole tool on a separate instance:
//
//	go test -tags cluster -timeout 60m .
//
// as root; on a shared machine use "go test -c" and "nice". They take 1.5 to 4
// minutes with a warm cache, and half an hour more with a cold one.
const (
	testName = "bwtest"
	longest  = 50 * time.Minute
)

// tool runs the built binary as a user would.
type tool struct {
	*cluster
	binary string
}

func TestCluster(t *testing.T) {
	if err := canRun(); err != nil {
		t.Fatal(err)
	}
	tool := newTool(t)
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok { // leave time to clean up
		limited, cancel := context.WithDeadline(ctx, deadline.Add(-90*time.Second))
		defer cancel()
		ctx = limited
	}
	tool.must(ctx, t, time.Minute, "down") // remove the cluster of an interrupted test
	before := hostState(t)
	t.Cleanup(func() { // also after a failure
		tool.must(context.Background(), t, time.Minute, "down", "--cache")
	})

	ok := t.Run("up works", func(t *testing.T) {
		tool.must(ctx, t, longest, "up", "--nodes", "2")
	})
	if !ok {
		return
	}
	t.Run("status is healthy", func(t *testing.T) { tool.healthy(ctx, t) })
	t.Run("exec runs in the caller's folder and returns the exit code", func(t *testing.T) {
		out := tool.must(ctx, t, time.Minute, "exec", "--", "sh", "-c", "pwd; echo $GOPROXY; kubectl get nodes -o name")
		wd, _ := os.Getwd()
		if want := wd + "\noff\nnode/bwtest-node\n"; !strings.HasPrefix(out, want) {
			t.Errorf("got %q, want %q first", out, want)
		}
		var exit *exec.ExitError
		if _, err := tool.run(ctx, time.Minute, "exec", "--", "sh", "-c", "exit 42"); !errors.As(err, &exit) || exit.ExitCode() != 42 {
			t.Errorf("got %v, want exit code 42", err)
		}
	})
	t.Run("a second up does nothing", func(t *testing.T) {
		pids := tool.pids()
		out := tool.must(ctx, t, 3*time.Minute, "up", "--nodes", "2")
		if !strings.Contains(out, "already up") || !maps.Equal(pids, tool.pids()) {
			t.Errorf("processes %v became %v:\n%s", pids, tool.pids(), out)
		}
	})
	t.Run("up restarts only the process that has ended", func(t *testing.T) {
		pids := tool.pids()
		kill(t, pids["kwok"])
		tool.eventually(ctx, t, "kwok to end", func() error { return tool.check("kwok")() }, false)
		tool.must(ctx, t, 2*time.Minute, "up", "--nodes", "2")
		now := tool.pids()
		if now["kwok"] == pids["kwok"] {
			t.Error("kwok was not restarted")
		}
		delete(pids, "kwok")
		delete(now, "kwok")
		if !maps.Equal(pids, now) {
			t.Errorf("processes %v became %v", pids, now)
		}
	})
	t.Run("up works after all processes were killed", func(t *testing.T) {
		tool.killEverything(ctx, t)
		if len(tool.ourMounts()) == 0 || !tool.namespaceFileExists() || !linkExists(tool.hostLink) {
			t.Error("mounts, namespace or link were removed with the processes: the test proves nothing")
		}
		tool.must(ctx, t, 4*time.Minute, "up", "--nodes", "2")
		tool.healthy(ctx, t)
	})
	t.Run("down leaves nothing", func(t *testing.T) {
		sockets := tool.shimSockets()
		if len(sockets) == 0 {
			t.Error("no shim has a socket: the test proves nothing")
		}
		tool.must(ctx, t, time.Minute, "down")
		tool.nothingLeft(t, before, sockets)
	})
	t.Run("down twice is fine", func(t *testing.T) {
		tool.must(ctx, t, time.Minute, "down")
		tool.nothingLeft(t, before, nil)
	})
	t.Run("down removes the socket of a shim that was killed before it wrote its address", func(t *testing.T) {
		if exists(shimFolder) {
			t.Skip(shimFolder + " existed before, so its sockets may be of another containerd, and down keeps them")
		}
		tool.killUpAt(ctx, t, "kubelet")
		orphan := orphanSocket(t)
		tool.must(ctx, t, time.Minute, "down")
		tool.nothingLeft(t, before, []string{orphan})
	})
	for _, name := range []string{"etcd", "kubelet", "traefik"} {
		t.Run("down leaves nothing after up was killed at "+name, func(t *testing.T) {
			tool.killUpAt(ctx, t, name)
			sockets := tool.shimSockets()
			tool.must(ctx, t, time.Minute, "down")
			tool.nothingLeft(t, before, sockets)
		})
	}
	t.Run("up works after up was killed half way", func(t *testing.T) {
		tool.killUpAt(ctx, t, "kubelet")
		tool.must(ctx, t, 4*time.Minute, "up", "--nodes", "2")
		tool.healthy(ctx, t)
		tool.must(ctx, t, time.Minute, "down")
		tool.nothingLeft(t, before, nil)
	})
}

func newTool(t *testing.T) tool {
	t.Helper()
	t.Setenv("BREAKWATER_NAME", testName)
	t.Setenv("BREAKWATER_STATE", "")
	l, err := newLayout()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tool{cluster: &cluster{layout: l, progress: newProgress(io.Discard, time.Now)}, binary: binary}
}

func (c tool) run(ctx context.Context, deadline time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (c tool) must(ctx context.Context, t *testing.T, deadline time.Duration, args ...string) string {
	t.Helper()
	begin := time.Now()
	out, err := c.run(ctx, deadline, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	t.Logf("%s took %.1f s", args[0], time.Since(begin).Seconds())
	return out
}

func (c tool) healthy(ctx context.Context, t *testing.T) {
	t.Helper()
	c.eventually(ctx, t, "health", func() error { // a probe may be late on a machine that is busy
		out, err := c.run(ctx, 30*time.Second, "status")
		if err != nil || strings.Contains(out, "ENDED") || !strings.Contains(out, "Knative are ready") || !strings.Contains(out, "1 real, 2 simulated") {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}, true)
}

func (c tool) pids() map[string]int {
	pids := map[string]int{}
	for _, p := range c.processes() {
		pids[p.Name] = p.PID
	}
	return pids
}

// killUpAt kills "up", but no process that it started, when the named process
// starts.
func (c tool) killUpAt(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, c.binary, "up", "--nodes", "2")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // started processes may hold its output open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	started := waiting{what: name + " to start", deadline: longest, every: 10 * time.Millisecond}.until(ctx, func(context.Context) error {
		_, err := os.Stat(c.pidFile(name))
		select {
		case end := <-ended:
			ended <- end
			return nil // the file is checked below
		default:
			return err
		}
	})
	_ = cmd.Process.Kill()
	end := <-ended
	if _, err := os.Stat(c.pidFile(name)); started != nil || err != nil {
		t.Fatalf("%s did not start: %v, %v\n%s", name, started, end, out.String())
	}
}

// killEverything kills all processes of the instance at once, without a "down".
func (c tool) killEverything(ctx context.Context, t *testing.T) {
	t.Helper()
	if len(c.cgroupProcesses()) < 20 {
		t.Errorf("only %d processes before", len(c.cgroupProcesses()))
	}
	c.eventually(ctx, t, "all processes to end", func() error {
		left := c.cgroupProcesses()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	}, true)
}

// eventually waits until check succeeds, or until it fails.
func (c tool) eventually(ctx context.Context, t *testing.T, what string, check func() error, success bool) {
	t.Helper()
	err := waiting{what: what, deadline: 2 * time.Minute, every: 10 * time.Millisecond}.until(ctx, func(context.Context) error {
		err := check()
		if success == (err == nil) {
			return nil
		}
		return fmt.Errorf("not yet: %w", err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c tool) shimSockets() []string {
	var sockets []string
	files, _ := filepath.Glob(c.in("run", "containerd", "io.containerd.runtime.v2.task", "*", "*", "address"))
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			sockets = append(sockets, strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://"))
		}
	}
	return sockets
}

// orphanSocket creates a socket in the folder of the shims that no process
// listens on and no address names.
func orphanSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(shimFolder, "s", "orphan")
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		t.Fatal(err)
	}
	closedSocket(t, path)
	return path
}

// nothingLeft checks independently of the code of "down".
func (c tool) nothingLeft(t *testing.T, before map[string][]string, sockets []string) {
	t.Helper()
	for what, found := range traces(t, c.cluster) {
		if len(found) > 0 {
			t.Errorf("%s: %v", what, found)
		}
	}
	for _, s := range sockets {
		if exists(s) {
			t.Errorf("socket %s", s)
		}
	}
	after := hostState(t)
	for what := range before {
		if !slices.Equal(before[what], after[what]) {
			t.Errorf("%s before:\n%v\nafter:\n%v", what, before[what], after[what])
		}
	}
}

// traces lists host resources with the name of the instance or the path of its
// state.
func traces(t *testing.T, c *cluster) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range files {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if pid == os.Getpid() || startTime(pid) == "" { // a zombie has ended; pid 1 reaps it
			continue
		}
		for _, f := range []string{"cmdline", "environ", "cgroup"} {
			data, _ := os.ReadFile(filepath.Join(dir, f))
			text := string(data)
			if f == "environ" { // an unrelated process may have our variable
				text = strings.ReplaceAll(text, "BREAKWATER_NAME="+c.name, "")
			}
			if strings.Contains(text, c.state) || strings.Contains(text, ":/"+c.name+"/") {
				found["processes"] = append(found["processes"], dir+"/"+f)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.state) || strings.Contains(line, c.containerdRoot()+"/") || strings.Contains(line, "/netns/"+c.name+" ") {
			found["mounts"] = append(found["mounts"], line)
		}
	}
	for _, pattern := range []string{c.state + "*", "/sys/fs/cgroup/" + c.name, "/sys/fs/cgroup/*/" + c.name,
		"/run/netns/" + c.name, "/var/lib/cni/results/" + c.name + "-*", "/sys/class/net/" + c.name + "*"} {
		paths, _ := filepath.Glob(pattern)
		found["files"] = append(found["files"], paths...)
	}
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, l := range links {
		if target, _ := os.Readlink(l); strings.HasPrefix(target, c.state) {
			found["log links"] = append(found["log links"], l)
		}
	}
	return found
}

// hostState lists host resources that have no instance name.
func hostState(t *testing.T) map[string][]string {
	t.Helper()
	state := map[string][]string{}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		state["links"] = append(state["links"], l.Name)
	}
	for what, command := range map[string][]string{"nft rules": {"nft", "-s", "list", "ruleset"}, "routes": {"ip", "route"}, "policies": {"ip", "rule"}} {
		if _, err := exec.LookPath(command[0]); err != nil {
			state[what] = []string{""} // "up" installs it
			continue
		}
		out, err := run(t.Context(), command[0], command[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		state[what] = strings.Split(out, "\n")
	}
	for _, s := range watchedSysctls() {
		v, _ := os.ReadFile("/proc/sys/" + s)
		state["kernel parameters"] = append(state["kernel parameters"], s+"="+strings.TrimSpace(string(v)))
	}
	for _, f := range watchedFolders() {
		state["folders"] = append(state["folders"], fmt.Sprintf("%s: %v", f, exists(f)))
	}
	for _, dir := range append(cgroupMounts(), netnsFolder, "/run", "/run/lock", "/opt") {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				state["entries of "+dir] = append(state["entries of "+dir], e.Name())
			}
		}
	}
	state["namespaces mounted"] = []string{strconv.FormatBool(isMount(netnsFolder))}
	return state
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
