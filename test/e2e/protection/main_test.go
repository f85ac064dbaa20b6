//go:build e2e && !controlplane

package protection

import (
	"flag"
	"fmt"
	"os"
	"testing"

	connection "github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/networkpolicy"
)

// TestMain runs the tests with tag e2e while the NetworkPolicies are enforced. They mostly wait, so
// more run in parallel than a small machine has cores.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // the flag exists and accepts a number
	c, err := connection.Connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(networkpolicy.Run(m, c.Kube))
}
