package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePageIsCurrent(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("../../..", page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(), string(got)); diff != "" {
		t.Errorf("run make generate; -want +got:\n%s", diff)
	}
}
