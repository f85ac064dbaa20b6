//go:build controlplane

package protection

import (
	"regexp"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// denied are the commands that pages show as denied.
var denied = regexp.MustCompile(`^kubectl delete deployment (web|sleep)$`)

func TestTheCommandsOfPagesSucceedOrAreDeniedAsThePagesSay(t *testing.T) {
	t.Parallel()
	all, err := commands.RunOn(commands.Protection, "../../..")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d commands, %v", len(all), err)
	}
	n := newNamespace(t)
	n.applyWithBudget(t, protectedDeployment, budgetManifest("maxUnavailable: 1"))
	control := newFlowControl(t, n, "")
	names := []string{
		"<namespace>", n.name, "pdfc cluster", "pdfc " + control.name, "pdfc NAME", "pdfc " + control.name,
		"create deployment web", "create deployment other", "deployment sleep", "deployment web",
	}
	folder := t.TempDir()
	t.Logf("%d commands", len(all))
	for _, c := range all {
		out, err := c.Run(t.Context(), folder, n.Config(), names...)
		if denied.MatchString(c.Text) {
			if err == nil || !strings.Contains(out, "protected from cascading deletion") {
				t.Errorf("%s was not denied: %v\n%s", c, err, out)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
}
