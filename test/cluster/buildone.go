// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// built is the location of a family.
type built struct {
	// Binaries is the folder of the binaries, Module the folder of the main module's source.
	Binaries string `json:"binaries"`
	Module   string `json:"module"`
}

// printBuilt builds a family and prints its location, a line of JSON.
func (c *cluster) printBuilt(ctx context.Context, name string) error {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name && f.binaries != nil })
	if i < 0 {
		return fmt.Errorf("build needs the name of a family, not %q", name)
	}
	f := families[i]
	if err := runGraph(ctx, c.progress, []task{c.buildTask(f)}); err != nil {
		return err
	}
	module, err := c.moduleCache(ctx, f, f.module)
	if err != nil {
		return err
	}
	line, err := json.Marshal(built{Binaries: c.binary(f, ""), Module: module})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return nil
}
