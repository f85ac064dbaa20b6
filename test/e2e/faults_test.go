//go:build e2e

package e2e

import "testing"

// TestFaultsOfTheOriginal tests the faults in docs/change/faults.md that no
// other test covers. Each subtest is named after the fault.
func TestFaultsOfTheOriginal(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"leaders are elected, and Events and metrics exist", leadersEventsMetrics},
	})
	runInParallel(t, e, []spec{
		{"CrashLoop pods do not count as finished", crashLoop},
		{"a late fail of an old version does not suspend the new one", lateFailOfAnOldVersion},
		{"two Deployments with the same template share no results", deploymentsWithOneTemplate},
	})
}
