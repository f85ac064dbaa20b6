package perf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// head is the beginning of the document.
const head = "# Performance\n\n`make bench` runs the benchmarks of [test/perf](../test/perf/doc.go) and writes this page, except its first\n" +
	"section, which is written by hand.\n"

// The sections of the document. A section does not change until it is measured again.
const (
	// sectionNotes is written by hand.
	sectionNotes      = "Against the targets"
	sectionReleases   = "A release"
	sectionIdle       = "Idle"
	sectionProtection = "Deletions"
	sectionPermission = "Permissions before a pod starts"
)

// replaceSection returns the document with a new text of one section.
func replaceSection(document, title, body string) string {
	sections := map[string]string{}
	for _, section := range strings.Split(document, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = strings.TrimSpace(text)
	}
	sections[title] = strings.TrimSpace(body)
	var out strings.Builder
	out.WriteString(head)
	for _, name := range []string{sectionNotes, sectionReleases, sectionIdle, sectionProtection, sectionPermission} {
		if text, ok := sections[name]; ok {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n", name, text)
		}
	}
	return out.String()
}

// write puts a section into the document at path.
func write(path, title, body string) error {
	document, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the results: %w", err)
	}
	if err := os.WriteFile(path, []byte(replaceSection(string(document), title, body)), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
