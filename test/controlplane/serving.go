package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// InstallServing installs the CRDs of Knative Serving, without its controllers: tests play them.
func (p *ControlPlane) InstallServing(ctx context.Context) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "knative.dev/serving")
	list.Dir = filepath.Join(p.root, "test", "cluster", "modules", "knative")
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("find Serving: %w", err)
	}
	crds := filepath.Join(strings.TrimSpace(string(dir)), "config", "core", "300-resources")
	args := []string{"apply", "--server-side"}
	for _, name := range []string{"service", "configuration", "revision", "route"} {
		args = append(args, "-f", filepath.Join(crds, name+".yaml"))
	}
	return p.kubectl(ctx, "", args...)
}
