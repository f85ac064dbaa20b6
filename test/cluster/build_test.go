// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestRequiredVersion(t *testing.T) {
	for tc, c := range map[string]struct{ gomod, want string }{
		"in a block":                {"require (\n\tx.dev/other v1.0.0\n\tx.dev/a v1.2.3 // indirect\n)\n", "v1.2.3"},
		"in a line":                 {"require x.dev/a v0.4.0\n", "v0.4.0"},
		"not that of a longer name": {"require (\n\tx.dev/a/b v2.0.0\n\tx.dev/a v1.0.0\n)\n", "v1.0.0"},
		"missing":                   {"require x.dev/b v1.0.0\n", ""},
	} {
		got, err := requiredVersion(c.gomod, "x.dev/a")
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", tc, got, err, c.want)
		}
	}
}

func TestEveryFamilyHasAPinnedVersion(t *testing.T) {
	c := testCluster(t)
	c.source = "."
	for _, f := range families {
		if v, err := c.version(f); err != nil || !strings.HasPrefix(v, "v") {
			t.Errorf("%s: %q, %v", f.name, v, err)
		}
	}
}

func TestTheBuildKeyCoversAllFilesOfTheFamily(t *testing.T) {
	c := testCluster(t)
	key := func(gomod, gosum string) string {
		put(t, filepath.Join(c.moduleDir(etcd), "go.mod"), gomod)
		put(t, filepath.Join(c.moduleDir(etcd), "go.sum"), gosum)
		k, err := c.key(etcd)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	one := key("require "+etcd.module+" v3.6.1\n", "a")
	if !strings.HasPrefix(one, "etcd-v3.6.1-") {
		t.Errorf("no name and version in %s", one)
	}
	if one != key("require "+etcd.module+" v3.6.1\n", "a") {
		t.Error("the key changed without a change of the files")
	}
	for _, other := range []string{key("require "+etcd.module+" v3.6.2\n", "a"), key("require "+etcd.module+" v3.6.1\n", "b")} {
		if other == one {
			t.Error("a change of a file did not change the key")
		}
	}
	put(t, filepath.Join(c.moduleDir(etcd), "main.go"), "package main")
	if one == key("require "+etcd.module+" v3.6.1\n", "a") {
		t.Error("a new file did not change the key")
	}
}

func TestOnlyACompleteBuildIsCached(t *testing.T) {
	c := testCluster(t)
	put(t, filepath.Join(c.moduleDir(etcd), "go.mod"), "require "+etcd.module+" v3.6.1\n")
	put(t, filepath.Join(c.moduleDir(etcd), "go.sum"), "")
	output := `while [ "$1" != -o ]; do shift; done; echo binary > "$2"; `

	fakeCommand(t, "go", output+"echo no space left >&2; exit 1")
	err := c.build(context.Background(), etcd)
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the compiler's output is not in %v", err)
	}
	if entries, _ := filepath.Glob(c.cached("bin", "*")); len(entries) > 0 {
		t.Errorf("a failed build created %v", entries)
	}

	fakeCommand(t, "go", output)
	if err := c.build(context.Background(), etcd); err != nil {
		t.Fatal(err)
	}
	if !exists(c.binary(etcd, "etcd")) {
		t.Errorf("no %s", c.binary(etcd, "etcd"))
	}

	fakeCommand(t, "go", "exit 1")
	if err := c.build(context.Background(), etcd); err != nil {
		t.Errorf("a cached build was built again: %v", err)
	}
}

func TestKubernetesIsBuiltWithItsVersion(t *testing.T) {
	c := testCluster(t)
	put(t, filepath.Join(c.moduleDir(kubernetes), "go.mod"), "require k8s.io/kubernetes v1.35.4\n")
	flags, err := c.ldflags(kubernetes)
	for _, want := range []string{"component-base/version.gitVersion=v1.35.4", "client-go/pkg/version.gitMajor=1", "gitMinor=35"} {
		if err != nil || !strings.Contains(flags, want) {
			t.Errorf("no %s in %q, %v", want, flags, err)
		}
	}
}
