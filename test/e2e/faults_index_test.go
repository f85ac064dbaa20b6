package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faultCount is the number of faults in docs/change/faults.md.
const faultCount = 20

var proof = regexp.MustCompile("`([^`]+)`(?: in ([a-z0-9/]+))?")

// Each proof in docs/change/faults.md has to be an existing test or subtest.
func TestEveryFaultOfTheOriginalHasItsProof(t *testing.T) {
	raw, err := os.ReadFile("../../docs/change/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	specs := sources(t, ".")
	rows := 0
	for _, line := range strings.Split(string(raw), "\n") {
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
			case folder == "" && !proves(specs, name):
				t.Errorf("%s: test/e2e has no subtest %q", cells[0], name)
			case folder != "" && !strings.Contains(sources(t, filepath.Join("../..", folder)), "func "+name+"("):
				t.Errorf("%s: %s has no %s", cells[0], folder, name)
			}
		}
	}
	if rows != faultCount {
		t.Errorf("%d faults, want %d", rows, faultCount)
	}
}

// proves reports whether a spec has the sentence.
func proves(sources, sentence string) bool { return strings.Contains(sources, `{"`+sentence+`", `) }

func sources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}
