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

// dumpFolder is the folder of the dumps of failed tests, relative to this
// folder.
const dumpFolder = "../../bin/e2e"

// dump writes the state of a namespace and the logs of Breakwater.
func (e *environment) dump(ctx context.Context, t *testing.T, namespace string, since time.Time) {
	dir := filepath.Join(dumpFolder, regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	if err := dump.Write(ctx, e.kube, dir, since, namespace); err != nil {
		t.Log(err)
	}
	t.Logf("the state of the failed test is in %s", dir)
}
