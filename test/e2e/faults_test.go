//go:build e2e

package e2e

import "testing"

// TestFaultsOfTheOriginal tests the faults in docs/change/faults.md that no
// other test covers. Each subtest is named after the fault.
func TestFaultsOfTheOriginal(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"no leader election, no events, no metrics", leadersEventsMetrics},
	})
	runInParallel(t, e, []spec{
		{"CrashLoop pods count as finished", crashLoop},
		{"a workload of an old version suspends the new one", lateFailOfAnOldVersion},
		{"two Deployments with the same template share results", deploymentsWithOneTemplate},
	})
}
