package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/breakwater-dev/breakwater/test/pause"
)

// Pause pauses a process of the control plane, kube-apiserver or etcd, until resume is called or
// the test ends. Connections to the process stay open, and nothing answers.
func (p *ControlPlane) Pause(t *testing.T, name string) (resume func()) {
	t.Helper()
	pid, err := p.pid(name)
	if err != nil {
		t.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := pause.Resume(pid); err != nil {
			t.Errorf("resume %s: %v", name, err)
		}
	})
	t.Cleanup(resume)
	if err := pause.Process(pid); err != nil {
		t.Fatalf("pause %s: %v", name, err)
	}
	return resume
}

// pid returns the id of a process that the tool has started.
func (p *ControlPlane) pid(name string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(p.dir, "pid", name+".json"))
	if err != nil {
		return 0, err
	}
	var started struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &started); err != nil {
		return 0, fmt.Errorf("read the process id of %s: %w", name, err)
	}
	return started.PID, nil
}
