package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const pluginProgram = "cmd/kubectl-breakwater"

// pluginCompletion is the program that kubectl calls to complete the words after `kubectl breakwater`.
const pluginCompletion = "kubectl_complete-breakwater"

// pluginPlatforms are the platforms of users' machines, not of clusters.
var pluginPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// krewManifest is a plugin manifest of krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
type krewManifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       krewSpec          `yaml:"spec"`
}

type krewSpec struct {
	Version          string         `yaml:"version"`
	Homepage         string         `yaml:"homepage"`
	ShortDescription string         `yaml:"shortDescription"`
	Description      string         `yaml:"description"`
	Platforms        []krewPlatform `yaml:"platforms"`
}

type krewPlatform struct {
	Selector map[string]map[string]string `yaml:"selector"`
	URI      string                       `yaml:"uri"`
	SHA256   string                       `yaml:"sha256"`
	Bin      string                       `yaml:"bin"`
}

// writePlugin writes an archive of the kubectl plugin for each platform, and the manifest with which
// krew installs it. In a release of some parts it writes nothing.
func writePlugin(ctx context.Context, o options) error {
	if o.only != nil {
		return nil
	}
	krew := krewManifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "breakwater"},
		Spec: krewSpec{
			Version: o.version, Homepage: "https://" + module,
			ShortDescription: "See and decide releases, budgets and permissions",
			Description:      "Shows the releases that Breakwater guards, explains what it denies or holds, and approves, rejects, repairs and rolls back.\n",
		},
	}
	for _, platform := range pluginPlatforms {
		system, arch, _ := strings.Cut(platform, "/")
		program, err := buildPlugin(ctx, o, system, arch)
		if err != nil {
			return fmt.Errorf("plugin for %s: %w", platform, err)
		}
		files, err := pluginFiles(o, system, program)
		if err != nil {
			return err
		}
		packed, err := archive(files, o.time)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("kubectl-breakwater_%s_%s.tar.gz", system, arch)
		if err := os.WriteFile(filepath.Join(o.out, name), packed, 0o644); err != nil {
			return err
		}
		krew.Spec.Platforms = append(krew.Spec.Platforms, krewPlatform{
			Selector: map[string]map[string]string{"matchLabels": {"os": system, "arch": arch}},
			URI:      fmt.Sprintf("%s/%s/%s", o.download, o.version, name), SHA256: fmt.Sprintf("%x", sha256.Sum256(packed)), Bin: files[0].name,
		})
	}
	text, err := yaml.Marshal(krew)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "breakwater.krew.yaml"), text, 0o644)
}

// pluginFiles returns the files of an archive, the program first. kubectl completes the plugin with a
// shell script, which Windows does not run.
func pluginFiles(o options, system string, program []byte) ([]file, error) {
	license, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	if system == "windows" {
		return []file{{"kubectl-breakwater.exe", 0o755, program}, {"LICENSE", 0o644, license}}, nil
	}
	complete, err := os.ReadFile(filepath.Join(o.root, pluginProgram, pluginCompletion))
	if err != nil {
		return nil, err
	}
	return []file{{"kubectl-breakwater", 0o755, program}, {pluginCompletion, 0o755, complete}, {"LICENSE", 0o644, license}}, nil
}

func buildPlugin(ctx context.Context, o options, system, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "plugin")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "out")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf(ldflags, o.version, o.revision), "-o", out, "./"+pluginProgram)
	cmd.Dir, cmd.Stderr = o.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}
