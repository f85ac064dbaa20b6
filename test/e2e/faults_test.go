//go:build e2e

package e2e

// faultSpecs test the faults in docs/change/faults.md that no other test covers. Each is
// named after the fault.
func faultSpecs() []spec {
	return []spec{
		{"leaders are elected, and Events and metrics exist", leadersEventsMetrics},
		{"CrashLoop pods do not count as finished", crashLoop},
		{"a late fail of an old version does not suspend the new one", lateFailOfAnOldVersion},
		{"two Deployments with the same template share no results", deploymentsWithOneTemplate},
	}
}
