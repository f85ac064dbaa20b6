// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hostMarks records host state that the cluster changes: kernel parameters that
// kubelet sets, and folders whose path cannot be configured. "up" writes it
// before any process starts, "down" restores it.
//
// Instances share this state. A new instance copies the marks of the existing
// ones, and the last "down" restores them.
type hostMarks struct {
	Boot    string            `json:"boot"` // kernel parameters of an earlier boot are not restored
	Sysctls map[string]string `json:"sysctls"`
	Absent  []string          `json:"absent"` // folders that did not exist before
	// Unmounted is true when /run/netns was not a mount; "ip netns add" mounts
	// it.
	Unmounted bool `json:"unmounted"`
}

const (
	netnsFolder   = "/run/netns"
	kubeletFolder = "/var/lib/kubelet"
	shimFolder    = "/run/containerd"
)

func watchedSysctls() []string {
	return []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
}

// watchedFolders lists the fixed folders of kubelet's device plugins and log
// links, libcni's results and the sockets of containerd's shims.
func watchedFolders() []string {
	return []string{kubeletFolder, "/var/lib/cni", "/var/log/containers", "/var/log/pods",
		shimFolder, "/opt/containerd", netnsFolder, "/run/kubernetes", "/run/lock/kubelet.lock"}
}

func (c *cluster) markHost() error {
	marks := hostMarks{Boot: bootID(), Sysctls: map[string]string{}, Unmounted: !isMount(netnsFolder)}
	for _, s := range watchedSysctls() {
		if v, err := os.ReadFile("/proc/sys/" + s); err == nil {
			marks.Sysctls[s] = strings.TrimSpace(string(v))
		}
	}
	for _, f := range watchedFolders() {
		if _, err := os.Lstat(f); errors.Is(err, fs.ErrNotExist) {
			marks.Absent = append(marks.Absent, f)
		}
	}
	for _, other := range c.otherMarks() {
		marks = marks.inherit(other)
	}
	data, err := json.MarshalIndent(marks, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.in("host.json"), data, 0o644)
}

// inherit returns the marks, with the values of the older instance where both have
// one.
func (m hostMarks) inherit(other hostMarks) hostMarks {
	m.Sysctls = maps.Clone(m.Sysctls)
	maps.Copy(m.Sysctls, other.Sysctls)
	m.Absent = append(slices.Clone(m.Absent), other.Absent...)
	slices.Sort(m.Absent)
	m.Absent = slices.Compact(m.Absent)
	m.Unmounted = m.Unmounted || other.Unmounted
	return m
}

// current is false for marks of an earlier boot. Marks without a boot count as
// current.
func (m hostMarks) current() bool { return m.Boot == "" || m.Boot == bootID() }

// otherMarks reads the marks of the other instances. It finds their states in the
// default folder and next to this instance's state.
func (c *cluster) otherMarks() []hostMarks {
	var others []hostMarks
	usual, _ := filepath.Glob("/var/lib/*-cluster/host.json")
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(c.state), "*-cluster", "host.json"))
	files := append(usual, beside...)
	slices.Sort(files)
	for _, f := range slices.Compact(files) {
		if f == c.in("host.json") {
			continue
		}
		if m, err := readMarks(f); err == nil && m.current() {
			others = append(others, m)
		}
	}
	return others
}

func readMarks(path string) (hostMarks, error) {
	var m hostMarks
	data, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// restoreHost removes our entries from shared folders. If no other instance
// exists, it also restores the parameters and removes the folders that the
// first instance created.
func (c *cluster) restoreHost(ctx context.Context) error {
	errs := []error{c.removeTraces()}
	marks, err := readMarks(c.in("host.json"))
	if err != nil || len(c.otherMarks()) > 0 {
		return errors.Join(errs...)
	}
	for s, v := range marks.Sysctls {
		if now, err := os.ReadFile("/proc/sys/" + s); err == nil && strings.TrimSpace(string(now)) != v && marks.current() {
			errs = append(errs, os.WriteFile("/proc/sys/"+s, []byte(v), 0o644))
		}
	}
	if names, err := os.ReadDir(netnsFolder); marks.Unmounted && err == nil && len(names) == 0 && isMount(netnsFolder) {
		errs = append(errs, unmount(netnsFolder))
	}
	if slices.Contains(marks.Absent, kubeletFolder) {
		// The path of the device plugins' socket and checkpoint cannot be
		// configured.
		errs = append(errs, os.RemoveAll(filepath.Join(kubeletFolder, "device-plugins")))
	}
	if slices.Contains(marks.Absent, shimFolder) {
		errs = append(errs, removeDeadSockets(ctx, filepath.Join(shimFolder, "s")))
	}
	for _, f := range marks.Absent {
		removeEmptyFolders(f)
	}
	return errors.Join(errs...)
}

// removeTraces removes our log links, CNI results and shim sockets.
func (c *cluster) removeTraces() error {
	var errs []error
	remove := func(path string) {
		if err := os.RemoveAll(path); err != nil {
			errs = append(errs, err)
		}
	}
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, c.state+"/") {
			remove(l)
		}
	}
	results, _ := filepath.Glob("/var/lib/cni/results/" + c.name + "-*")
	loopbacks, _ := filepath.Glob("/var/lib/cni/results/cni-loopback-*")
	for _, r := range append(results, loopbacks...) {
		if data, err := os.ReadFile(r); err == nil && strings.Contains(string(data), c.state+"/") {
			remove(r)
		}
	}
	addresses, _ := filepath.Glob(c.in("run", "containerd", "io.containerd.runtime.v2.task", "*", "*", "address"))
	for _, a := range addresses {
		if data, err := os.ReadFile(a); err == nil {
			if socket, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "unix://"); ok {
				remove(socket)
			}
		}
	}
	return errors.Join(errs...)
}

// removeDeadSockets removes the sockets of a folder that no process listens on.
// A shim that was killed between creating its socket and writing its address
// leaves one that removeTraces cannot find.
func removeDeadSockets(ctx context.Context, dir string) error {
	var errs []error
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type() != fs.ModeSocket {
			continue
		}
		path := filepath.Join(dir, e.Name())
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// removeEmptyFolders removes the empty folders of a tree.
func removeEmptyFolders(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			removeEmptyFolders(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir) // fails for a folder with entries, which are not ours
}

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func isMount(dir string) bool {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	return slices.ContainsFunc(strings.Split(string(data), "\n"), func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) > 4 && fields[4] == dir
	})
}
