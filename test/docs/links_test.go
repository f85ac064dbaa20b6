package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A code span with a file or package of the repository, such as `reconciler/change/pod/decide.go`.
	codePath = regexp.MustCompile("`((?:admission|altershield|apis|cmd|config|docs|events|functions|hack|internal|permission|reconciler|test|tools)/[\\w./-]+)`")
	// A code span with the name of a test, such as `TestABatchHasAtLeastOnePod`.
	codeTest  = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeFence = regexp.MustCompile("(?ms)^```.*?^```")
)

func TestTheTargetsOfLinksExist(t *testing.T) {
	for _, page := range pages(t) {
		text := codeFence.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if !exists(file) {
				t.Errorf("%s links %s, which does not exist", page, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(file, ".md") && !anchors(read(t, file))[anchor] {
				t.Errorf("%s links %s, but %s has no such heading", page, m[1], file)
			}
		}
	}
}

func TestFilesThatPagesNameExist(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range codePath.FindAllStringSubmatch(read(t, page), -1) {
			name := strings.TrimRight(m[1], "./")
			if strings.Contains(name, "...") || exists(name) {
				continue
			}
			t.Errorf("%s names %s, which does not exist", page, m[1])
		}
	}
}

func TestTestsThatPagesNameExist(t *testing.T) {
	known := map[string]bool{}
	for _, file := range tracked(t, "*_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
			known[m[1]] = true
		}
	}
	for _, page := range pages(t) {
		for _, m := range codeTest.FindAllStringSubmatch(read(t, page), -1) {
			if !known[m[1]] {
				t.Errorf("%s names test %s, which does not exist", page, m[1])
			}
		}
	}
}

// anchors returns the anchors of a page's headings on GitHub.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := link.ReplaceAllString(m[1], "")
		text = notAnchor.ReplaceAllString(strings.ToLower(text), "")
		found[strings.ReplaceAll(strings.TrimSpace(text), " ", "-")] = true
	}
	return found
}

func pages(t *testing.T) []string { return tracked(t, "*.md") }

// tracked lists files of the repository by their paths from its root.
func tracked(t *testing.T, pattern string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", pattern)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list %s: %v", pattern, err)
	}
	var files []string
	for _, file := range strings.Fields(string(out)) {
		if exists(file) {
			files = append(files, file)
		}
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

// sources returns the text of a file, or of the Go files of a folder.
func sources(name string) (all []string) {
	files := []string{filepath.Join(root, name)}
	if found, err := filepath.Glob(filepath.Join(root, name, "*.go")); err == nil && len(found) > 0 {
		files = found
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			all = append(all, string(raw))
		}
	}
	return all
}
