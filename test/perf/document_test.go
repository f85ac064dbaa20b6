package perf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASectionIsKeptUntilItIsMeasuredAgain(t *testing.T) {
	document := replaceSection("# Performance\n\nold\n", sectionIdle, idle{Machine: "Here.", Pods: 10, RSS: 5 * mib}.markdown())
	document = replaceSection(document, sectionReleases, "one")
	document = replaceSection(document, sectionReleases, "two\n")
	want := head + "\n## A release\n\ntwo\n\n## Idle\n\n" + strings.TrimSpace(idle{Machine: "Here.", Pods: 10, RSS: 5 * mib}.markdown()) + "\n"
	if document != want {
		t.Errorf("got\n%s\nwant\n%s", document, want)
	}
}

func TestThePageShowsTheGoalsAndTheCostOfAllMeasurements(t *testing.T) {
	folder := t.TempDir()
	r := results{Page: filepath.Join(folder, "page.md"), Figures: filepath.Join(folder, "figures.json")}
	if err := os.WriteFile(r.Page, []byte("# Performance\n\n## "+sectionNotes+"\n\nBy hand.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page := func() string {
		t.Helper()
		raw, err := os.ReadFile(r.Page)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if err := r.keep(sectionReleases, measuredReleases().markdown(), measuredReleases().figures()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page(), sectionCluster) {
		t.Error("a cost is computed without the idle measurement")
	}
	i := idle{Machine: "Here.", Pods: 10000, RSS: 120 * mib, CPU: 300 * 1e6, Writes: 120}
	if err := r.keep(sectionIdle, i.markdown(), i.figures()); err != nil {
		t.Fatal(err)
	}
	got := page()
	at := -1
	for _, want := range []string{
		"## " + sectionCluster, "## " + sectionGoals,
		"| a release one by one | one by one: CPU of the whole machine, on top of bare | 1.50 × bare | ≤ 1.50 × bare | met |",
		"| a release one by one | one by one: writes per pod | 5 | ≤ 4 | **missed** |",
		"| an idle cluster | memory of the largest process | 120 MiB | ≤ 100 MiB | **missed** |",
		"| an idle cluster | CPU per minute, all processes of Breakwater | 0.30 s | ≤ 0.50 s | met |",
		"## " + sectionNotes + "\n\nBy hand.\n", "## " + sectionReleases, "## " + sectionIdle,
	} {
		found := strings.Index(got, want)
		if found <= at {
			t.Errorf("%q is missing, or not in its place, in\n%s", want, got)
		}
		at = found
	}
	// 300 releases of 20 pods an hour: 6000 pods, 0.3 s and 5 writes each, and 0.3 s and 120 writes a minute at idle.
	if want := "| 10000 | 300 | 6000 | 0.51 cores |"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if want := "| 10.3 | 3.7 |"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestAnUnknownSectionIsNotDropped(t *testing.T) {
	folder := t.TempDir()
	r := results{Page: filepath.Join(folder, "page.md"), Figures: filepath.Join(folder, "figures.json")}
	const page = "# Performance\n\n## By hand\n\nText.\n"
	if err := os.WriteFile(r.Page, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.keep(sectionIdle, "new", nil); err == nil || !strings.Contains(err.Error(), "By hand") {
		t.Errorf("error %v, want one that names the section", err)
	}
	if raw, err := os.ReadFile(r.Page); err != nil || string(raw) != page {
		t.Errorf("the page is %s, %v", raw, err)
	}
}

func TestAGoalIsAMaximumOrAMinimum(t *testing.T) {
	for _, c := range []struct {
		goal  goal
		value float64
		want  bool
	}{
		{atMost(4), 4, true}, {atMost(4), 4.01, false}, {atMost(0), 0, true}, {atMost(0), 1, false},
		{atLeast(0.66), 0.66, true}, {atLeast(0.66), 0.65, false}, {atLeast(1000), 1200, true},
	} {
		if got := c.goal.met(c.value); got != c.want {
			t.Errorf("%+v of %v: %t, want %t", c.goal, c.value, got, c.want)
		}
	}
}

func TestIdleAndStolenTimeOfTheMachineDoNotCount(t *testing.T) {
	got, err := parseMachineCPU("cpu  100 20 30 99999 88888 4 6 77777 0 0\ncpu0 1 2 3\n")
	if err != nil || got.Milliseconds() != 1600 {
		t.Errorf("%s, %v, want 1.6 s", got, err)
	}
	for _, bad := range []string{"", "intr 1 2", "cpu 1 2 3"} {
		if _, err := parseMachineCPU(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
