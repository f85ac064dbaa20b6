//go:build controlplane

package protection

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// TestMain runs the tests with tag controlplane on a control plane of their own.
func TestMain(m *testing.M) {
	ctx := context.Background()
	plane, err := controlplane.StartProtection(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
