package perf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// head is the beginning of the document.
const head = "# Performance\n\n`make bench` measures on the embedded cluster ([test/perf](../test/perf/doc.go)) and writes this page, except\n" +
	"section [Why a goal is missed](#why-a-goal-is-missed), which is written by hand.\n"

// The sections of the document. A section does not change until it is measured again.
const (
	// sectionCluster is computed from the figures of the other sections.
	sectionCluster = "What it costs in your cluster"
	// sectionGoals has the figures of all sections that have a goal.
	sectionGoals = "Goals"
	// sectionNotes is written by hand.
	sectionNotes      = "Why a goal is missed"
	sectionReleases   = "A release"
	sectionConcurrent = "Many releases at once"
	sectionZero       = "A release while the functions are at zero"
	sectionIdle       = "Idle"
	sectionProtection = "Deletions"
	sectionCrash      = "A crash under a budget"
	sectionPermission = "Permissions before a pod starts"
)

// measuredSections are the sections that have measurements, in the order of the document.
var measuredSections = []string{
	sectionReleases, sectionConcurrent, sectionZero, sectionIdle, sectionProtection, sectionCrash, sectionPermission,
}

// allSections returns the sections in the order of the document.
func allSections() []string {
	return slices.Concat([]string{sectionCluster, sectionGoals, sectionNotes}, measuredSections)
}

// unknownSection returns a section of the document that replaceSection would drop, or "".
func unknownSection(document string) string {
	for _, section := range strings.Split(document, "\n## ")[1:] {
		if name, _, _ := strings.Cut(section, "\n"); !slices.Contains(allSections(), name) {
			return name
		}
	}
	return ""
}

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
	for _, name := range allSections() {
		if text, ok := sections[name]; ok {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n", name, text)
		}
	}
	return out.String()
}

// results are the files of the results: the page, and its figures.
type results struct{ Page, Figures string }

// keep writes a measured section into the page, and the sections that are computed from all figures.
func (r results) keep(title, body string, measured []figure) error {
	raw, err := os.ReadFile(r.Page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the results: %w", err)
	}
	if name := unknownSection(string(raw)); name != "" {
		return fmt.Errorf("%s has the unknown section %q: rename or remove it", r.Page, name)
	}
	all, err := readFigures(r.Figures)
	if err != nil {
		return err
	}
	if err := all.write(r.Figures, title, measured); err != nil {
		return err
	}
	page := replaceSection(string(raw), title, body)
	page = replaceSection(page, sectionGoals, all.markdown())
	if costs, measured := costsOf(all); measured {
		page = replaceSection(page, sectionCluster, costs.markdown())
	}
	if err := os.WriteFile(r.Page, []byte(page), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
