package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kubectl completes a plugin with the output of this script, whose arguments are the words so far. The
// last word may be empty.
func TestTheScriptForKubectlAsksThePluginForCompletions(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "kubectl-breakwater"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "./kubectl_complete-breakwater", "explain", "")
	command.Env = append(os.Environ(), "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil || string(out) != "<__complete><explain><>" {
		t.Errorf("got %s, %v", out, err)
	}
}
