//go:build controlplane

package protection

import (
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/test/builder"
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
	// The Deployments of Breakwater, without pods.
	for _, file := range []string{"420-webhook-deployment.yaml", "500-controller.yaml"} {
		for _, d := range builder.Manifests[appsv1.Deployment](t, "../../../config/protection/"+file) {
			if d.Kind == "Deployment" {
				n.run(t, "create", "deployment", d.Name, "--image=none", "--replicas=0")
			}
		}
	}
	names := []string{
		"-n altershieldoperator-system get deployments", "get deployments",
		"kubectl edit pdfc cluster", `KUBE_EDITOR="sed -i 's/limit: 0/limit: 7/'" kubectl edit pdfc ` + control.name,
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
	if limit := n.run(t, "get", "pdfc", control.name, "-o", "jsonpath={.spec.limitRules[0].limit}"); limit != "7" {
		t.Errorf("the limit is %s after the edit, want 7", limit)
	}
}
