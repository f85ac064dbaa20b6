package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const own = "github.com/breakwater-dev/breakwater/"

// allowed are the packages of this module that the binary may contain.
var allowed = []string{
	own + "cmd/permission/init-action-client",
	own + "permission/initaction/client",
	own + "permission/initaction/protocol",
}

func TestTheClientImportsOnlyTheStandardLibrary(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if !slices.Contains(allowed, path) {
			t.Errorf("the client imports %s", path)
		}
	}
}

func TestTheBinaryIsStaticAndBelow10MB(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "init-action-client")
	// The flags of ko.yaml.
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 10_000_000 {
		t.Errorf("the binary has %d bytes", info.Size())
	}
	t.Logf("%d bytes", info.Size())
}
