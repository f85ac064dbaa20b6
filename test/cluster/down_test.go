// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMountsOfTheClusterAreListedLatestFirst(t *testing.T) {
	const info = `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:40 / /var/lib/bwx-cluster/kubelet rw - ext4 /dev/vda rw
31 30 0:41 / /var/lib/bwx-cluster/kubelet/a\040b rw - tmpfs tmpfs rw
32 22 0:42 / /var/lib/bwx-cluster2/kubelet rw - tmpfs tmpfs rw
33 22 0:43 / /var/lib/bwx-cluster rw - tmpfs tmpfs rw
34 22 0:44 / /cache/containerd/x rw - tmpfs tmpfs rw
cut`
	got := mountsBelow(info, "/var/lib/bwx-cluster", "/cache/containerd")
	want := []string{"/cache/containerd/x", "/var/lib/bwx-cluster/kubelet/a b", "/var/lib/bwx-cluster/kubelet"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANamedInstanceRemovesOnlyItsOwnPartOfTheCache(t *testing.T) {
	c := testCluster(t)
	own := []string{filepath.Join(c.containerdRoot(), "x"), filepath.Join(c.registryData(), c.manifestDir, "x")}
	shared := []string{c.cached("bin", "x"), c.cached("containerd", "x"), c.cached("registry", "manifests", "x")}
	for _, f := range append(own, shared...) {
		put(t, f, "")
	}
	if err := c.removeCache(); err != nil {
		t.Fatal(err)
	}
	for _, f := range own {
		if exists(f) {
			t.Errorf("%s is left", f)
		}
	}
	for _, f := range shared {
		if !exists(f) {
			t.Errorf("%s was removed", f)
		}
	}
}

func TestOnlyOneCommandRunsAtATimeAndItsLockIsRemoved(t *testing.T) {
	c := testCluster(t)
	err := c.locked(t.Context(), func() error {
		second := c.locked(t.Context(), func() error { t.Error("a second command ran"); return nil })
		if second == nil || !strings.Contains(second.Error(), "another command") {
			t.Errorf("got %v", second)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if exists(c.state + ".lock") {
		t.Error("the lock is left")
	}
	if err := os.WriteFile(c.state+".lock", []byte("4711"), 0o644); err != nil { // as after a killed command
		t.Fatal(err)
	}
	if err := c.locked(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("the lock file of a killed process is still locked: %v", err)
	}
}

// A process that is being started holds all files of its parent until exec closes them.
func TestTheLockOfAKilledCommandIsAwaitedUntilItsChildrenHaveReleasedIt(t *testing.T) {
	c := testCluster(t)
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	held, err := os.Create(c.state + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(held, ended.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := tryLock(held); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = held.Close() })
	if err := c.locked(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestTheLastInstanceRestoresTheOriginalSettings(t *testing.T) {
	first := hostMarks{Boot: bootID(), Sysctls: map[string]string{"kernel/panic": "0"}, Absent: []string{"/b", "/a"}, Unmounted: true}
	second := hostMarks{Boot: bootID(), Sysctls: map[string]string{"kernel/panic": "10", "vm/x": "1"}, Absent: []string{"/a", "/c"}}
	got := second.inherit(first)
	if got.Sysctls["kernel/panic"] != "0" || got.Sysctls["vm/x"] != "1" || !got.Unmounted || !slices.Equal(got.Absent, []string{"/a", "/b", "/c"}) {
		t.Errorf("%+v", got)
	}
	if second.Sysctls["kernel/panic"] != "10" {
		t.Error("inherit changed its receiver")
	}
}

func TestMarksOfAnEarlierBootAreIgnored(t *testing.T) {
	if (hostMarks{Boot: "earlier"}).current() || !(hostMarks{Boot: bootID()}).current() {
		t.Error("marks of an earlier boot are current")
	}
}

func TestOnlyEmptyFoldersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a", "theirs"), "")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	removeEmptyFolders(filepath.Join(dir, "a"))
	if !exists(filepath.Join(dir, "a", "theirs")) || exists(filepath.Join(dir, "a", "b")) {
		t.Error("a file was removed, or an empty folder is left")
	}
}

func TestOnlySocketsWithoutAListenerAreRemoved(t *testing.T) {
	dir := t.TempDir()
	dead, live, file := filepath.Join(dir, "dead"), filepath.Join(dir, "live"), filepath.Join(dir, "file")
	closedSocket(t, dead)
	l := listen(t, live)
	defer func() { _ = l.Close() }()
	put(t, file, "")
	if err := removeDeadSockets(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if exists(dead) || !exists(live) || !exists(file) {
		t.Errorf("exist: dead socket %t, live socket %t, file %t", exists(dead), exists(live), exists(file))
	}
}
