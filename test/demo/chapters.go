package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// chapter is a part of the demo that can be shown alone.
type chapter struct {
	name string
	show func(*steps, context.Context) error
	// next are commands that a reader may run after the demo.
	next []string
}

func allChapters() []chapter {
	return []chapter{
		{"releases", (*steps).releases, []string{
			"kubectl -n " + demo + " get changeworkloads,changepods",
			"kubectl -n " + demo + " get changeworkloads -o yaml",
			"kubectl -n " + demo + " get events --sort-by=.lastTimestamp",
		}},
		{"knative", (*steps).knativeServices, []string{
			"kubectl -n " + services + " get ksvc,revisions,changeworkloads",
		}},
		{"judge", (*steps).judgeMetrics, []string{
			"export PATH=$PWD/bin:$PATH     # for kubectl breakwater",
		}},
		{"protection", (*steps).protection, nil},
		{"permissions", (*steps).permissions, []string{
			"kubectl -n " + shops + " get events --sort-by=.lastTimestamp",
		}},
	}
}

func chapterNames() string {
	var names []string
	for _, c := range allChapters() {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// selectChapters returns the chapters with these names, which spaces separate, or all without a name.
func selectChapters(names string) ([]chapter, error) {
	all := allChapters()
	if names == "" {
		return all, nil
	}
	var selected []chapter
	for name := range strings.FieldsSeq(names) {
		i := slices.IndexFunc(all, func(c chapter) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no chapter %q: set CHAPTER to some of %s", name, chapterNames())
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}
