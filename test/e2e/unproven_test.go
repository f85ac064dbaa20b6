//go:build e2e

package e2e

import (
	"os"
	"testing"
)

// unproven skips a group of tests that compiles but has never been seen on a
// cluster. E2E_UNPROVEN=1 runs it; whoever sees it pass takes the call out.
func unproven(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E_UNPROVEN") == "" {
		t.Skip("never seen on a cluster yet; E2E_UNPROVEN=1 runs it")
	}
}
