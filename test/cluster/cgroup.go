// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// All processes of the cluster are in one cgroup: the tool's processes in
// breakwater/system, pods in breakwater/kubepods. So the kernel lists them even
// if all pid files are lost.

// cgroupMounts returns the folders that hold a hierarchy: one for cgroup v2, one per
// controller for v1.
func cgroupMounts() []string {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		return []string{root}
	}
	var mounts []string
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() { // v1 has links such as cpu -> cpu,cpuacct
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			mounts = append(mounts, dir)
		}
	}
	return mounts
}

// trackingMount returns the hierarchy in which the tool lists its processes.
func trackingMount() string {
	for _, m := range cgroupMounts() {
		if filepath.Base(m) == "pids" {
			return m
		}
	}
	if m := cgroupMounts(); len(m) > 0 {
		return m[0]
	}
	return "/sys/fs/cgroup"
}

// systemCgroups returns the groups of the tool's processes: the one that lists them, and with
// cgroup v1 that of their CPU.
func (c *cluster) systemCgroups() []string {
	groups := []string{filepath.Join(trackingMount(), c.name, "system")}
	if m := cpuMount(); m != trackingMount() {
		groups = append(groups, filepath.Join(m, c.name, "system"))
	}
	return groups
}

// cpuMount returns the hierarchy that divides CPU time.
func cpuMount() string {
	for _, m := range cgroupMounts() {
		if slices.Contains(strings.Split(filepath.Base(m), ","), "cpu") {
			return m
		}
	}
	return trackingMount()
}

// weigh sets the weights of CPU time. The cluster gets four times the default of a group, which
// a terminal session has too: builds and tests disturb it as if they ran on another machine.
// In it, the tool's processes get about as much as all pods, to which kubelet gives 1024 shares a
// core. It ignores errors, which are normal for the files of the other version of cgroups: without
// weights, the cluster is only slower on a busy machine.
func (c *cluster) weigh() {
	group := filepath.Join(cpuMount(), c.name)
	for file, weight := range map[string]int{
		"cpu.shares": 4 * 1024, "system/cpu.shares": runtime.NumCPU() * 1024, // cgroup v1
		"cpu.weight": 4 * 100, "system/cpu.weight": 100, // cgroup v2
	} {
		_ = os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(weight)), 0o644)
	}
}

// makeCgroups creates the breakwater cgroup in every hierarchy, because kubelet
// needs its root in all of them.
func (c *cluster) makeCgroups() error {
	for _, m := range cgroupMounts() {
		dir := filepath.Join(m, c.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// A v1 cpuset accepts no process until its CPUs and memory nodes are
		// set.
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			if v, err := os.ReadFile(filepath.Join(m, f)); err == nil && len(bytes.TrimSpace(v)) > 0 {
				_ = os.WriteFile(filepath.Join(dir, f), v, 0o644)
			}
		}
		if _, err := os.Stat(filepath.Join(m, "cgroup.controllers")); err == nil {
			delegate(m)
			delegate(dir)
		}
	}
	for _, dir := range c.systemCgroups() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	c.weigh()
	return nil
}

// delegate enables the v2 controllers for the children. It ignores errors,
// which are normal in a container; kubelet reports a missing controller itself.
func delegate(dir string) {
	names, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	for _, n := range strings.Fields(string(names)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+n), 0o644)
	}
}

// cgroupProcesses lists the processes below breakwater, including those of pods.
func (c *cluster) cgroupProcesses() []int {
	var pids []int
	_ = filepath.WalkDir(filepath.Join(trackingMount(), c.name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // the cgroup was removed meanwhile
		}
		data, _ := os.ReadFile(path)
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// removeCgroups removes the empty folders, the deepest first.
func (c *cluster) removeCgroups() error {
	var errs []error
	for _, dir := range c.ourCgroups() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *cluster) ourCgroups() []string {
	var dirs []string
	for _, m := range cgroupMounts() {
		_ = filepath.WalkDir(filepath.Join(m, c.name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append([]string{path}, dirs...) // WalkDir visits a parent before its children
			}
			return nil
		})
	}
	return dirs
}
