package perf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// head begins the document.
const head = "# Performance\n\nWritten by `make bench`, but for the notes; what is measured is in test/perf.\n"

// Sections of the document. Each is kept until it is measured again.
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
	for _, part := range strings.Split(document, "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
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
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the results: %w", err)
	}
	if err := os.WriteFile(path, []byte(replaceSection(string(was), title, body)), 0o644); err != nil {
		return fmt.Errorf("keep the results: %w", err)
	}
	return nil
}
