package main

import (
	"strings"
	"testing"
)

func TestChaptersAreSelectedByTheirNames(t *testing.T) {
	for name, want := range map[string]int{"": len(allChapters()), "protection": 1, "permissions protection": 2} {
		if got, err := selectChapters(name); err != nil || len(got) != want {
			t.Errorf("%q selects %d chapters, want %d (%v)", name, len(got), want, err)
		}
	}
	_, err := selectChapters("drain")
	if err == nil || !strings.Contains(err.Error(), "releases, knative, judge, protection, permissions") {
		t.Errorf("the error does not name the chapters: %v", err)
	}
}
