package changeworkload

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Unjudged pods are a part of another number, which the summary names.
func TestTheSummaryNamesTheNumberThatUnjudgedPodsAreIn(t *testing.T) {
	pods := func(n int) []v1alpha1.PodSummary { return make([]v1alpha1.PodSummary, n) }
	outcomes := PodOutcomes{Passed: pods(5), PassedUnjudged: 1, Checking: pods(2), HeldUnjudged: 2, Preparing: pods(3)}
	const want = "5 pods passed, 2 are being checked, 3 are not in a batch yet; 1 of the passed pods are unjudged; " +
		"2 of the pods being checked are unjudged and wait for a late verdict or a person"
	if got := outcomes.summary(); got != want {
		t.Errorf("got %q", got)
	}
}
