// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testCluster returns a cluster whose state, cache and modules are in temporary
// folders.
func testCluster(t *testing.T) *cluster {
	t.Helper()
	i, err := newInstance("bwunit")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := layout{instance: i, source: filepath.Join(dir, "source"), cache: filepath.Join(dir, "cache"), state: filepath.Join(dir, "bwunit-cluster")}
	return &cluster{layout: l, progress: newProgress(io.Discard, time.Now)}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := writeFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// fakeCommand puts a shell script first in PATH.
func fakeCommand(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, name), "#!/bin/sh\n"+script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// closedSocket creates a socket that no process listens on.
func closedSocket(t *testing.T, path string) {
	t.Helper()
	l := listen(t, path)
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
