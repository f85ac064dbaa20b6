//go:build controlplane

package protection

import (
	"os"
	"testing"

	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// TestMain runs the tests with tag controlplane on a control plane of their own.
func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.StartProtection))
}
