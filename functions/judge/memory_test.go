package judge

import (
	"testing"

	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/manifest"
)

// Otherwise the kernel kills the process at large answers, and no release in the cluster has a verdict.
func TestTheAnswersOfPrometheusFitIntoTheMemory(t *testing.T) {
	limit := manifest.ResourcesOf(t, "../../config/judge/600-judge.yaml").SoftMemory
	if need := int64(maxAnswerBytes + prometheus.Overhead*prometheus.MaxBytesInFlight); need > limit {
		t.Errorf("the answers need %d MiB, GOMEMLIMIT is %d MiB", need>>20, limit>>20)
	}
}
