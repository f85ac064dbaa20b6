// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// family is a set of binaries built from one of the modules below modules/.
// Each has its own go.mod, because their dependencies conflict with each other
// and with the product's.
type family struct {
	name     string
	module   string            // the required module whose version is that of the build
	binaries map[string]string // file name to package
	replaced *replacedFile     // nil for none
	takes    time.Duration     // to build on two idle cores
}

var (
	kubernetes = family{name: "kubernetes", module: "k8s.io/kubernetes", binaries: map[string]string{
		"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
		"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
		"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
		"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
		"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
		"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
	}, takes: 8 * time.Minute}
	etcd    = family{name: "etcd", module: "go.etcd.io/etcd/server/v3", binaries: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"}, takes: time.Minute}
	kwok    = family{name: "kwok", module: "sigs.k8s.io/kwok", binaries: map[string]string{"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, takes: 2 * time.Minute}
	coredns = family{name: "coredns", module: "github.com/coredns/coredns", binaries: map[string]string{"coredns": "."}, takes: 2 * time.Minute}
	ko      = family{name: "ko", module: "github.com/google/ko", binaries: map[string]string{"ko": "github.com/google/ko"}, takes: 2 * time.Minute}
	traefik = family{
		name: "traefik", module: "github.com/traefik/traefik/v3", binaries: map[string]string{"traefik": "github.com/traefik/traefik/v3/cmd/traefik"},
		takes: 4 * time.Minute, replaced: &replacedFile{"github.com/go-acme/lego/v4", "providers/dns/zz_gen_dns_providers.go", "dnsproviders.go"},
	}
	// knative is not built here: ko builds its images, see knative.go.
	knative = family{name: "knative", module: "knative.dev/eventing", takes: 5 * time.Minute}
	// rollouts and kruise are controllers of custom kinds, for tests of test/change.
	rollouts = family{name: "rollouts", module: "github.com/argoproj/argo-rollouts", binaries: map[string]string{
		"rollouts-controller": "github.com/argoproj/argo-rollouts/cmd/rollouts-controller",
	}}
	kruise = family{name: "kruise", module: "github.com/openkruise/kruise", binaries: map[string]string{"kruise-manager": "github.com/openkruise/kruise"}}
	// collector is the OpenTelemetry Collector, for a test of test/cost.
	collector = family{name: "collector", module: "go.opentelemetry.io/collector/otelcol", binaries: map[string]string{"collector": "."}}

	// kn is the command line of Knative, for a test of test/e2e.
	kn = family{name: "kn", module: "knative.dev/client", binaries: map[string]string{"kn": "knative.dev/client/cmd/kn"}, takes: time.Minute}

	families = []family{kubernetes, etcd, kwok, coredns, ko, traefik, knative, rollouts, kruise, collector, kn}
)

func (c *cluster) moduleDir(f family) string { return filepath.Join(c.source, "modules", f.name) }

// version reads the version of the family's main module from its go.mod.
func (c *cluster) version(f family) (string, error) {
	data, err := os.ReadFile(filepath.Join(c.moduleDir(f), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find pinned versions (run this in the repository): %w", err)
	}
	return requiredVersion(string(data), f.module)
}

func requiredVersion(gomod, module string) (string, error) {
	m := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + `\s+(v\S+)`).FindStringSubmatch(gomod)
	if m == nil {
		return "", fmt.Errorf("go.mod does not require %s", module)
	}
	return m[1], nil
}

// key is the cache key of a build: its version and a hash of the files of its folder.
func (c *cluster) key(f family) (string, error) {
	version, err := c.version(f)
	if err != nil {
		return "", err
	}
	files, err := os.ReadDir(c.moduleDir(f))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(c.moduleDir(f), file.Name()))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	return fmt.Sprintf("%s-%s-%x", f.name, version, sum.Sum(nil)[:4]), nil
}

// build compiles the family unless it is cached. It renames the folder into
// place only when all binaries are complete.
func (c *cluster) build(ctx context.Context, f family) error {
	key, err := c.key(f)
	if err != nil {
		return err
	}
	final := c.cached("bin", key)
	if _, err := os.Stat(final); err == nil {
		c.used(final)
		return nil
	}
	flags, err := c.ldflags(f)
	if err != nil {
		return err
	}
	temporary := final + partSuffix + strconv.Itoa(os.Getpid())
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // no effect after the rename
	args := []string{"build", "-trimpath", "-ldflags", flags}
	if f.replaced != nil {
		source := c.cached("bin", key+"-source"+partSuffix+strconv.Itoa(os.Getpid()))
		defer func() { _ = os.RemoveAll(source) }()
		modfile, err := c.replaceFile(ctx, f, source)
		if err != nil {
			return err
		}
		args = append(args, "-modfile", modfile)
	}
	output, packages := temporary+"/", []string{}
	for name, pkg := range f.binaries {
		if len(f.binaries) == 1 {
			output += name // by default the file has the name of its package
		}
		packages = append(packages, pkg)
	}
	args = append(append(args, "-o", output), packages...)
	if _, err := c.goCommand(ctx, f, args...); err != nil {
		return err
	}
	if err := os.Rename(temporary, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // another instance may have built the same key meanwhile
	}
	return nil
}

// buildTask is the task of "up" and "build" that builds a family.
func (c *cluster) buildTask(f family, needs ...string) task {
	return task{name: "build " + f.name, needs: needs, heavy: true, takes: c.buildTime(f), run: func(ctx context.Context) error { return c.build(ctx, f) }}
}

// buildTime is how long the build of a family takes; 0 if it is cached.
func (c *cluster) buildTime(f family) time.Duration {
	path := c.binary(f, "")
	if f.name == knative.name {
		path, _ = c.resolved() // up fails without go.mod
	}
	if _, err := os.Stat(path); err == nil {
		return 0
	}
	return f.takes
}

// partSuffix marks an incomplete file or folder; the pid of its writer follows.
const partSuffix = ".part-"

// ldflags sets the version of Kubernetes as its own build scripts do. Without
// it Kubernetes reports v0.0.0, which Knative rejects.
func (c *cluster) ldflags(f family) (string, error) {
	flags := "-s -w"
	if f.name != kubernetes.name {
		return flags, nil
	}
	version, err := c.version(f)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{
			"gitVersion": version, "gitMajor": parts[0], "gitMinor": parts[1], "gitTreeState": "clean",
			"gitCommit": "unknown", "buildDate": "1970-01-01T00:00:00Z",
		} {
			flags += fmt.Sprintf(" -X %s.%s=%s", pkg, name, value)
		}
	}
	return flags, nil
}

// goCommand runs go in the family's module with low priority, because the
// machine may be shared.
func (c *cluster) goCommand(ctx context.Context, f family, args ...string) (string, error) {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	return runWith(ctx, env, nil, "nice", append([]string{"go", "-C", c.moduleDir(f)}, args...)...)
}

// binary is the path of a built file. The file exists after the family's build
// task.
func (c *cluster) binary(f family, name string) string {
	key, err := c.key(f)
	if err != nil {
		return name
	}
	return c.cached("bin", key, name)
}

// moduleCache is the folder of a module that a family requires, in Go's module cache.
func (c *cluster) moduleCache(ctx context.Context, f family, module string) (string, error) {
	out, err := c.goCommand(ctx, f, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", err
	}
	dir := strings.TrimSpace(out)
	if dir == "" {
		if _, err := c.goCommand(ctx, f, "mod", "download", module); err != nil {
			return "", err
		}
		return c.moduleCache(ctx, f, module)
	}
	return dir, nil
}
