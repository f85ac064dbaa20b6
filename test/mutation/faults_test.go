package main

import (
	"os"
	"path/filepath"
	"testing"
)

// make mutations runs the faults; this keeps them applicable.
func TestEachFaultChangesItsFile(t *testing.T) {
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join("../..", f.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := f.apply(string(source)); err != nil {
			t.Errorf("%s: %s: %v", f.file, f.what, err)
		}
	}
}

func TestEachPartHasFaults(t *testing.T) {
	count := map[string]int{}
	for _, f := range faults {
		count[f.part]++
	}
	for _, part := range []string{change, protection, permission} {
		if count[part] < 10 {
			t.Errorf("part %s has %d faults, want at least 10", part, count[part])
		}
	}
}
