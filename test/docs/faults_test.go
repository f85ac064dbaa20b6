package docs

import (
	"regexp"
	"strings"
	"testing"
)

const (
	faultsPage = "docs/change/faults.md"
	// faultCount is the number of faults on the page.
	faultCount = 20
)

var proof = regexp.MustCompile("`([^`]+)`(?: in ([a-z0-9/]+))?")

// Each proof on the page of faults has to be an existing test or spec.
func TestEveryFaultOfTheOriginalHasItsProof(t *testing.T) {
	specs, rows := testsOf(t, "test/e2e"), 0
	for line := range strings.SplitSeq(read(t, faultsPage), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 || cells[0] == "| fault" {
			continue
		}
		rows++
		proofs := proof.FindAllStringSubmatch(cells[1], -1)
		if len(proofs) == 0 {
			t.Errorf("%s: no proof", cells[0])
		}
		for _, p := range proofs {
			name, folder := p[1], p[2]
			switch {
			case folder == "" && !isSpec(specs, name):
				t.Errorf("%s: test/e2e has no spec %q", cells[0], name)
			case folder != "" && !strings.Contains(testsOf(t, folder), "func "+name+"("):
				t.Errorf("%s: %s has no %s", cells[0], folder, name)
			}
		}
	}
	if rows != faultCount {
		t.Errorf("%d faults, want %d", rows, faultCount)
	}
}
