// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"os"
	"path"
	"slices"
	"testing"
)

func TestTheImageOfPrometheusHasEverySharedObjectOfTheProgram(t *testing.T) {
	program, err := elf.Open(prometheusProgram)
	if os.IsNotExist(err) {
		t.Skip("Debian's package prometheus is not installed")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	needed, err := program.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	image, err := prometheusImage(nil)
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, f := range image.files {
		has = append(has, path.Base(f.name))
	}
	for _, library := range append(needed, "prometheus") {
		if !slices.Contains(has, library) {
			t.Errorf("the image has no %s, only %v", library, has)
		}
	}
}
