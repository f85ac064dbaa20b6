//go:build e2e

// Package permission tests part permission in a real cluster: init containers wait on a
// real node for the double of a provider, which runs in the cluster. The tests check the
// records of the double.
//
// The tests shorten deadlines and intervals in config-permission and register
// permissions at the installed permission centre.
package permission

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/networkpolicy"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// shortTimeout bounds operations that take seconds.
const shortTimeout = 90 * time.Second

// revokeDeadline is the revoke-deadline of shortSettings.
const revokeDeadline = 20 * time.Second

// shortSettings are deadlines and intervals for tests.
const shortSettings = `{"data":{"revoke-deadline":"20s","pod-report-interval":"10s","backoff-duration":"6s","backoff-jitter":"0","backoff-cap":"1m"}}`

// defaultSettings are the values of config/permission.
const defaultSettings = `{"data":{"revoke-deadline":"5m","pod-report-interval":"1h","backoff-duration":"2m","backoff-jitter":"1.0","backoff-cap":"1h",
 "announced-address-annotation":"","announced-address-writer":""}}`

// parallelTests is the number of tests that run at once. They mostly wait, so it exceeds the two
// cores of a small machine.
const parallelTests = "6"

// Tests that run in parallel change only their namespace; that of announced addresses also changes settings, a
// policy and a NetworkPolicy that no other parallel test needs. They begin after all others, which disturb the
// components of the system or the double.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", parallelTests) // the flag exists and accepts a number
	code := 1
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
	} else {
		code = run(m)
	}
	database.Stop()
	if err := configure(context.Background(), defaultSettings); err != nil {
		fmt.Fprintln(os.Stderr, "restore:", err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests while the NetworkPolicies are enforced.
func run(m *testing.M) int {
	c, err := clients.Connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return networkpolicy.Run(m, c.Kube)
}

func configure(ctx context.Context, patch string) error {
	return setup.Kubectl(ctx, "-n", setup.System, "patch", "configmap", "config-permission", "--type=merge", "-p", patch)
}
