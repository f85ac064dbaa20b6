// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseStartTime(t *testing.T) {
	after := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	for tc, c := range map[string]struct{ stat, want string }{
		"plain":                      {"7 (etcd) S" + after, "4242"},
		"parentheses in the command": {"7 (a) Z (b) S" + after, "4242"},
		"zombie":                     {"7 (etcd) Z" + after, ""},
		"state X (dead)":             {"7 (etcd) X" + after, ""},
		"cut":                        {"7 (etcd) S 1 2", ""},
		"empty":                      {"", ""},
	} {
		if got := parseStartTime(c.stat); got != c.want {
			t.Errorf("%s: got %q, want %q", tc, got, c.want)
		}
	}
}

func TestAReusedPIDIsNotOurProcess(t *testing.T) {
	self := os.Getpid()
	for tc, c := range map[string]struct {
		p    process
		want bool
	}{
		"ours":           {process{PID: self, Started: startTime(self)}, true},
		"another start":  {process{PID: self, Started: "1"}, false},
		"no start":       {process{PID: self}, false},
		"init":           {process{PID: 1, Started: startTime(1)}, false},
		"no such number": {process{PID: 1 << 30, Started: "1"}, false},
	} {
		if c.p.running() != c.want {
			t.Errorf("%s: running is %v", tc, !c.want)
		}
	}
}

func TestAZombieIsNotRunning(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := process{PID: cmd.Process.Pid, Started: startTime(cmd.Process.Pid)}
	if !p.running() {
		t.Error("a running process is not seen")
	}
	_ = in.Close()
	_ = cmd.Wait()
	if p.running() {
		t.Error("an ended process is seen as running")
	}
}

func TestBrokenPIDFilesAreIgnored(t *testing.T) {
	c := testCluster(t)
	whole, _ := json.Marshal(process{Name: "etcd", PID: 7, Started: "9"})
	put(t, c.pidFile("etcd"), string(whole))
	put(t, c.pidFile("kubelet"), `{"name": "kub`)
	if all := c.processes(); len(all) != 1 || all[0].Name != "etcd" {
		t.Errorf("%+v", all)
	}
}

func TestProcessesDoNotInheritProxyAndClusterVariables(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "KUBECONFIG=x", "https_proxy=x", "NO_PROXY=x", "ETCD_NAME=x", "HOME=/root"})
	if strings.Join(got, " ") != "PATH=/bin HOME=/root" {
		t.Error(got)
	}
}
