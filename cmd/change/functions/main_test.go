package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestAnUnknownFunctionIsAnError(t *testing.T) {
	for _, args := range [][]string{nil, {"unknown"}, {"submit", "verdict"}} {
		err := run(args)
		if err == nil || !strings.Contains(err.Error(), "use one of callback, deadletter, notify, openapi, report, submit, verdict") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

func TestEachServiceRunsTheFunctionOfItsName(t *testing.T) {
	files, err := filepath.Glob("../../../config/[cn]o*/6*.yaml") // core and notify
	if err != nil {
		t.Fatal(err)
	}
	service := regexp.MustCompile(`(?s)kind: (?:Service|Deployment)\nmetadata:\n  name: (\w+)\n.*?cmd/change/functions\n +args: \[(\w+)\]`)
	var found []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range service.FindAllStringSubmatch(string(raw), -1) {
			if m[1] != m[2] {
				t.Errorf("%s: Service %s runs function %s", file, m[1], m[2])
			}
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	if want := []string{"callback", "deadletter", "notify", "openapi", "report", "submit", "verdict"}; !slices.Equal(found, want) {
		t.Errorf("found Services %q, want %q", found, want)
	}
}
