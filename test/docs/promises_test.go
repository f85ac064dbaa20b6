package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const promisesPage = "docs/promises.md"

var (
	// openWork are the areas of work that will add missing tests.
	openWork = []string{"tests", "load", "security", "adoption"}
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// proof is a spec, or a test with or without its folder.
	proof = regexp.MustCompile("`([^`]+)`(?: in ([a-z0-9/]+))?")
)

func TestEveryPromiseHasATestOrIsOpenWork(t *testing.T) {
	specs := testsOf(t, "test/e2e")
	untested, rows := false, 0
	for line := range strings.SplitSeq(read(t, promisesPage), "\n") {
		untested = untested || line == "## Promises without a test"
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "promise" {
			continue
		}
		if rows++; len(cells) != 3 || !link.MatchString(cells[1]) {
			t.Errorf("%q is not a promise, a link to its page, and a test or open work", line)
			continue
		}
		if untested {
			if !slices.Contains(openWork, cells[2]) {
				t.Errorf("%s: %q is none of %v", cells[0], cells[2], openWork)
			}
			continue
		}
		checkProofs(t, specs, cells[0], cells[2])
	}
	if rows == 0 {
		t.Error("the page has no promises")
	}
}

// checkProofs checks the specs, and the tests with a folder, that the row names in a cell.
// TestTestsThatPagesNameExist checks the names of all tests.
func checkProofs(t *testing.T, specs, row, cell string) {
	t.Helper()
	proofs := proof.FindAllStringSubmatch(cell, -1)
	if len(proofs) == 0 {
		t.Errorf("%s: no test", row)
	}
	for _, p := range proofs {
		name, folder := p[1], p[2]
		switch {
		case folder != "" && !strings.Contains(testsOf(t, folder), "func "+name+"("):
			t.Errorf("%s: %s has no %s", row, folder, name)
		case folder == "" && !codeTest.MatchString(p[0]) && !isSpec(specs, name):
			t.Errorf("%s: test/e2e has no spec %q", row, name)
		}
	}
}

// testsOf returns the tests of a folder, without those of its subfolders.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range tracked(t, ":(glob)"+folder+"/*_test.go") {
		all.WriteString(read(t, file))
	}
	return all.String()
}

// isSpec reports whether a spec of test/e2e, with the given sources, has the sentence.
func isSpec(specs, sentence string) bool { return strings.Contains(specs, `{"`+sentence+`", `) }

// pagesWithoutPromises are the glossary, and the lists of tests themselves.
var pagesWithoutPromises = []string{faultsPage, "docs/glossary.md", promisesPage}

func TestEveryPageHasAPromise(t *testing.T) {
	linked := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(read(t, promisesPage), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		linked[filepath.Join(filepath.Dir(promisesPage), target)] = true
	}
	for _, page := range append(tracked(t, "docs/*.md"), "README.md", "SECURITY.md") {
		// TestEachAlertHasARunbook checks the runbooks.
		if !linked[page] && !slices.Contains(pagesWithoutPromises, page) && !strings.HasPrefix(page, "docs/runbooks/") {
			t.Errorf("%s has no promise of %s", promisesPage, page)
		}
	}
}

func TestEveryTestOfProtectionIsInARow(t *testing.T) {
	page := read(t, promisesPage)
	for _, file := range tracked(t, "test/e2e/protection/*_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
			if m[1] != "TestMain" && !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("%s does not name %s of %s", promisesPage, m[1], file)
			}
		}
	}
}
