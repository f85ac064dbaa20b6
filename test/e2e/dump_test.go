//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/dump"
)

// dumpFolder is where a failed test leaves what it saw, from this folder.
const dumpFolder = "../../bin/e2e"

// dump keeps the state of a namespace, and what the parts of Breakwater said
// meanwhile.
func (e *environment) dump(ctx context.Context, t *testing.T, namespace string, since time.Time) {
	dir := filepath.Join(dumpFolder, regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	if err := dump.Write(ctx, e.kube, dir, since, namespace); err != nil {
		t.Log(err)
	}
	t.Logf("the state of the failed test is in %s", dir)
}
