package commands

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// RunOn returns the commands of all pages that a control plane runs, each text once. Root is the root
// of the repository.
func RunOn(plane Plane, root string) ([]Command, error) {
	pages := []string{"README.md", "DEVELOPMENT.md"}
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ os.DirEntry, err error) error {
		if page, relative := filepath.Rel(root, file); err == nil && relative == nil && strings.HasSuffix(page, ".md") && !slices.Contains(NotRead, page) {
			pages = append(pages, page)
		}
		return err
	}); err != nil {
		return nil, err
	}
	var found []Command
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		all, _, err := Of(page, string(text))
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			same := slices.ContainsFunc(found, func(f Command) bool { return f.Text == c.Text })
			if p, ok := ProofOf(c); ok && p.On == plane && !same {
				found = append(found, c)
			}
		}
	}
	return found, nil
}

// writes are the verbs of kubectl that have the flag --dry-run.
var writes = []string{"annotate", "apply", "create", "delete", "label", "patch", "undo"}

// Run runs a command in a folder with a kubeconfig, and returns its output. Programs in the folder,
// such as plugins, are found first. A request that writes is a dry run: admission decides, and other
// tests are not disturbed. names are pairs: a name on the pages, and the name in the test that
// replaces it.
func (c Command) Run(ctx context.Context, folder, kubeconfig string, names ...string) (string, error) {
	script := "set -euo pipefail\n"
	for _, call := range c.Calls {
		if slices.ContainsFunc(call.Args, func(a string) bool { return slices.Contains(writes, a) }) {
			script += "kubectl() { command kubectl \"$@\" --dry-run=server; }\n"
			break
		}
	}
	script += strings.NewReplacer(names...).Replace(c.Source) + "\n"
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s\n%s", c, err, script, out)
	}
	return string(out), err
}
