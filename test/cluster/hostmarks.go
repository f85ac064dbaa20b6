// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// hostMarks is what programs change on the host though told to stay in their folders:
// kubelet sets kernel parameters, and some folders have names that no setting moves.
// Written before they start, put back by "down".
type hostMarks struct {
	Sysctls map[string]string `json:"sysctls"`
	Absent  []string          `json:"absent"` // folders that were not there before
}

var (
	watchedSysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
	watchedFolders = []string{"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods",
		"/run/containerd", "/opt/containerd", "/run/netns", "/run/kubernetes", "/run/lock/kubelet.lock"}
)

func (c *cluster) markHost() error {
	marks := hostMarks{Sysctls: map[string]string{}}
	for _, s := range watchedSysctls {
		if v, err := os.ReadFile("/proc/sys/" + s); err == nil {
			marks.Sysctls[s] = strings.TrimSpace(string(v))
		}
	}
	for _, f := range watchedFolders {
		if _, err := os.Lstat(f); errors.Is(err, fs.ErrNotExist) {
			marks.Absent = append(marks.Absent, f)
		}
	}
	data, err := json.MarshalIndent(marks, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.in("host.json"), data, 0o644)
}

// restoreHost puts the parameters back and removes what is ours in folders that others
// may share, then the folders that we were the first to use.
func (c *cluster) restoreHost() error {
	var errs []error
	errs = append(errs, c.removeTraces())
	var marks hostMarks
	data, err := os.ReadFile(c.in("host.json"))
	if err != nil || json.Unmarshal(data, &marks) != nil {
		return errors.Join(errs...)
	}
	for s, v := range marks.Sysctls {
		if now, err := os.ReadFile("/proc/sys/" + s); err == nil && strings.TrimSpace(string(now)) != v {
			errs = append(errs, os.WriteFile("/proc/sys/"+s, []byte(v), 0o644))
		}
	}
	for _, f := range marks.Absent {
		removeEmptyFolders(f)
	}
	// kubelet's device plugin folder has a fixed name and holds its socket and checkpoint.
	for _, f := range marks.Absent {
		if f == "/var/lib/kubelet" {
			errs = append(errs, os.RemoveAll(f))
		}
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
	results, _ := filepath.Glob("/var/lib/cni/results/" + cniNetwork + "-*")
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

// removeEmptyFolders removes a tree of folders as far as it is empty.
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
	_ = os.Remove(dir) // refused when something is left: then it is not ours
}
