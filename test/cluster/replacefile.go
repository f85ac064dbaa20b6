// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// replacedFile is a file of a required module. A file in the family's folder replaces it,
// so that the build does not need the imports of the original.
type replacedFile struct{ module, path, by string }

// replaceFile copies the module to a folder with the file replaced, and returns a go.mod
// that uses the copy. (The flag -overlay of go build rejects files of the module cache.)
func (c *cluster) replaceFile(ctx context.Context, f family, to string) (modfile string, err error) {
	module, err := c.moduleCache(ctx, f, f.replaced.module)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(to, os.DirFS(module)); err != nil {
		return "", fmt.Errorf("copy module %s: %w", f.replaced.module, err)
	}
	read := func(name string) []byte {
		data, readErr := os.ReadFile(filepath.Join(c.moduleDir(f), name))
		if readErr != nil && err == nil {
			err = readErr
		}
		return data
	}
	replacement, gomod, gosum := read(f.replaced.by), read("go.mod"), read("go.sum")
	if err != nil {
		return "", err
	}
	gomod = fmt.Appendf(gomod, "\nreplace %s => %s\n", f.replaced.module, to)
	modfile = filepath.Join(to, "breakwater.mod")
	for path, data := range map[string][]byte{
		filepath.Join(to, filepath.FromSlash(f.replaced.path)): replacement,
		modfile:                             gomod,
		filepath.Join(to, "breakwater.sum"): gosum,
	} {
		if err := writeFile(path, data, 0o644); err != nil {
			return "", err
		}
	}
	return modfile, nil
}
