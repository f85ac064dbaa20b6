//go:build e2e && !controlplane

package protection

import (
	"fmt"
	"os"
	"testing"

	connection "github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/networkpolicy"
)

// TestMain runs the tests with tag e2e while the NetworkPolicies are enforced.
func TestMain(m *testing.M) {
	c, err := connection.Connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(networkpolicy.Run(m, c.Kube))
}
