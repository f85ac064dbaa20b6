// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// down removes a cluster, complete or not. It finds processes and mounts
// through the kernel, because a killed "up" may not have written its state.
func (c *cluster) down(ctx context.Context) error {
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"end processes", c.killAll},
		{"unmount", c.unmountAll},
		{"remove network namespace", c.removeNamespace},
		{"remove cgroups", c.awaitCgroupsRemoved},
		{"restore host settings", c.restoreHost},
		{"remove state", func(context.Context) error { return c.removeState() }},
	}
	for _, s := range steps {
		if err := c.step(s.name, func() error { return s.run(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// removeCache removes this instance's folders from the cache. The default
// instance also removes the shared builds and images, unless another instance
// uses them.
func (c *cluster) removeCache() error {
	if c.name != defaultName {
		return errors.Join(os.RemoveAll(c.containerdRoot()), os.RemoveAll(filepath.Join(c.registryData(), c.manifestDir)))
	}
	if users := processesNaming(c.cache + "/"); len(users) > 0 {
		return fmt.Errorf("processes %v use the cache %s: remove their cluster first", users, c.cache)
	}
	return os.RemoveAll(c.cache)
}

// processesNaming lists processes whose command line contains the text.
func processesNaming(text string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// leftovers lists the existing parts of a cluster. It is empty after "down".
func (c *cluster) leftovers() []string {
	var left []string
	for _, pid := range c.cgroupProcesses() {
		left = append(left, fmt.Sprintf("process %d", pid))
	}
	for _, p := range c.processes() {
		if p.running() {
			left = append(left, "process "+p.Name)
		}
	}
	for _, m := range c.ourMounts() {
		left = append(left, "mount "+m)
	}
	if linkExists(c.hostLink) {
		left = append(left, "interface "+c.hostLink)
	}
	if c.namespaceFileExists() {
		left = append(left, "network namespace "+c.netnsPath())
	}
	for _, dir := range c.ourCgroups() {
		left = append(left, "cgroup "+dir)
	}
	if entries, _ := os.ReadDir(c.state); len(entries) > 0 {
		left = append(left, "state "+c.state)
	}
	return left
}

// ourMounts lists mounts below the state and containerd's root, the latest first.
func (c *cluster) ourMounts() []string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return mountsBelow(string(data), c.state, c.containerdRoot())
}

func mountsBelow(mountinfo string, folders ...string) []string {
	var found []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		target := unescape.Replace(fields[4])
		for _, dir := range folders {
			if strings.HasPrefix(target, dir+"/") {
				found = append([]string{target}, found...)
			}
		}
	}
	return found
}

func (c *cluster) unmountAll(ctx context.Context) error {
	return waiting{what: "all mounts to be removed", deadline: 20 * time.Second}.until(ctx, func(context.Context) error {
		var errs []error
		for _, m := range c.ourMounts() {
			if err := unmount(m); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m, err))
			}
		}
		if left := c.ourMounts(); len(left) > 0 {
			errs = append(errs, fmt.Errorf("still mounted: %s", strings.Join(firstArgs(left), ", ")))
		}
		return errors.Join(errs...)
	})
}

// awaitCgroupsRemoved retries: the kernel frees a cgroup shortly after its last process.
func (c *cluster) awaitCgroupsRemoved(ctx context.Context) error {
	return waiting{what: "all cgroups to be removed", deadline: 10 * time.Second}.until(ctx, func(context.Context) error {
		return c.removeCgroups()
	})
}

// removeState keeps the lock file, which this process holds.
func (c *cluster) removeState() error {
	if left := c.ourMounts(); len(left) > 0 {
		return fmt.Errorf("remove state: still mounted: %v", left)
	}
	return os.RemoveAll(c.state)
}

// stop ends one process and waits for it.
func (c *cluster) stop(ctx context.Context, name string) error {
	for _, p := range c.processes() {
		if p.Name != name || !p.running() {
			continue
		}
		if err := signalTo(p.PID, syscall.SIGTERM); err != nil {
			return err
		}
		err := waiting{what: name + " to end", log: c.log(name), deadline: 20 * time.Second, every: 20 * time.Millisecond}.until(ctx, func(context.Context) error {
			if p.running() {
				return fmt.Errorf("process %d is running", p.PID)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return os.Remove(c.pidFile(name))
}
