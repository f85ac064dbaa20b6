package docs

import (
	"strings"
	"testing"
)

const (
	faultsPage = "docs/change/faults.md"
	// faultCount is the number of faults on the page.
	faultCount = 20
)

// Each proof on the page of faults has to be an existing test or spec.
func TestEveryFaultOfTheOriginalHasItsProof(t *testing.T) {
	specs, rows := testsOf(t, "test/e2e"), 0
	for line := range strings.SplitSeq(read(t, faultsPage), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 || cells[0] == "| fault" {
			continue
		}
		rows++
		checkProofs(t, specs, cells[0], cells[1])
	}
	if rows != faultCount {
		t.Errorf("%d faults, want %d", rows, faultCount)
	}
}
