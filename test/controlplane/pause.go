package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Pause pauses a process of the control plane, kube-apiserver or etcd, until resume is called or
// the test ends. Connections to the process stay open, and nothing answers.
func (p *ControlPlane) Pause(t *testing.T, name string) (resume func()) {
	t.Helper()
	process, err := p.process(name)
	if err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Errorf("resume %s: %v", name, err)
		}
	})
	t.Cleanup(resume)
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("pause %s: %v", name, err)
	}
	return resume
}

// process returns a process that the tool has started.
func (p *ControlPlane) process(name string) (*os.Process, error) {
	raw, err := os.ReadFile(filepath.Join(p.dir, "pid", name+".json"))
	if err != nil {
		return nil, err
	}
	var started struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &started); err != nil {
		return nil, fmt.Errorf("read the process id of %s: %w", name, err)
	}
	return os.FindProcess(started.PID)
}
