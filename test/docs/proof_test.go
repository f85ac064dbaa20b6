package docs

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

func TestEveryCommandIsRunByATestOrHasAReason(t *testing.T) {
	used, run := map[string]bool{}, 0
	unrun := map[string][]string{} // by reason
	all := commandsOf(t)
	planes := map[commands.Plane][]commands.Command{}
	for _, plane := range []commands.Plane{commands.Change, commands.Protection} {
		found, err := commands.RunOn(plane, root)
		if err != nil {
			t.Fatal(err)
		}
		planes[plane] = found
	}
	for _, c := range all {
		p, ok := commands.ProofOf(c)
		if !ok {
			t.Errorf("%s\nno test runs it, and it has no reason: add a proof to test/docs/commands", c)
			continue
		}
		used[p.Command.String()] = true
		if p.On != "" && !slices.ContainsFunc(planes[p.On], func(r commands.Command) bool { return r.Text == c.Text }) {
			t.Errorf("%s\n%s does not read the page", c, p.On)
		}
		if p.Reason == "" {
			run++
			continue
		}
		unrun[p.Reason] = append(unrun[p.Reason], c.String())
	}
	for _, p := range commands.Proofs {
		if !used[p.Command.String()] {
			t.Errorf("no page has a command %s", p.Command)
		}
		if p.File != "" && !strings.Contains(read(t, p.File), p.Has) {
			t.Errorf("%s does not have %s, so it does not run %s", p.File, p.Has, p.Command)
		}
	}
	t.Logf("%d commands of pages; tests run %d. The others are only checked:", len(all), run)
	for _, reason := range slices.Sorted(maps.Keys(unrun)) {
		t.Logf("%d: %s\n  %s", len(unrun[reason]), reason, strings.Join(unrun[reason], "\n  "))
	}
}

func TestMakeHelpListsTheTargetsOfPages(t *testing.T) {
	command := exec.CommandContext(t.Context(), "make", "-s", "help")
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("make help: %v\n%s", err, out)
	}
	for _, c := range commandsOf(t) {
		for _, call := range c.Calls {
			for _, target := range call.Args[1:] {
				if call.Args[0] == "make" && !strings.Contains(target, "=") && target != "-s" && !strings.Contains("\n"+string(out), "\n  "+target+" ") {
					t.Errorf("%s\nmake help does not list %s", c, target)
				}
			}
		}
	}
}
