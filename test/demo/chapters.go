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
	// next are commands for inspection of what the chapter keeps.
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
		{"judge", (*steps).judgeMetrics, nil},
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

// selectChapters returns the named chapter, or all for an empty name.
func selectChapters(name string) ([]chapter, error) {
	all := allChapters()
	if name == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(c chapter) bool { return c.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no chapter %q: set CHAPTER to one of %s", name, chapterNames())
	}
	return all[i : i+1], nil
}
