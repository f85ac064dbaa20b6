//go:build e2e

package permission

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// documentedCommands returns the commands in a section of a page.
func documentedCommands(t *testing.T, document, section string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %s", document, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var all []string
	for line := range strings.Lines(text) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			all = append(all, line)
		}
	}
	return all
}

// runScript runs documented commands in a shell with the test's namespace. It replaces
// the names of the example.
func (n *namespace) runScript(t *testing.T, lines []string, names ...string) string {
	t.Helper()
	script := "set -euo pipefail\ntrap 'jobs -p | xargs -r kill' EXIT\n" + strings.NewReplacer(names...).Replace(strings.Join(lines, ""))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env, cmd.Dir = append(os.Environ(), "KUBECONFIG="+n.Config()), t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// platformCommands are the commands of the page of the platform team.
type platformCommands struct {
	*namespace
	begin, rest []string
}

func (n *namespace) platformCommands(t *testing.T) platformCommands {
	t.Helper()
	all := documentedCommands(t, "permission/centre.md", "Operate")
	// The first commands define the command ask.
	end := 1 + slices.IndexFunc(all, func(line string) bool { return strings.HasSuffix(line, "\"$@\"; }\n") })
	return platformCommands{n, all[:end:end], append(all[end:], documentedCommands(t, "permission/centre.md", "Reports of existing pods")...)}
}

// typed runs the command that contains a text, for an application.
func (c platformCommands) typed(t *testing.T, id, what string) string {
	t.Helper()
	for _, line := range c.rest {
		if strings.Contains(line, what) {
			return c.runScript(t, append(c.begin, line), "shop", c.name, "web-0", "web", "$id", id, "$cluster", "default")
		}
	}
	t.Fatalf("the page has no command with %s", what)
	return ""
}

// The documented commands work without changes.
func TestTheCommandsOfThePlatformTeamsPageWork(t *testing.T) {
	n := newNamespace(t, enabled)
	commands := n.platformCommands(t)
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	p := n.get(t, "web")
	app := applications(t, p)[0]
	if output := commands.typed(t, "", "pod=web-0"); !strings.Contains(output, app.ID) {
		t.Errorf("applications of the pod: %s", output)
	}
	if output := commands.typed(t, app.ID, "/history"); !strings.Contains(output, `"to":"Granted"`) {
		t.Errorf("history: %s", output)
	}
	setFaults(t, provider.Faults{Status: http.StatusBadGateway})
	commands.typed(t, app.ID, "/revoke")
	eventually(t, shortTimeout, "the application is leaked", func() error {
		if output := commands.typed(t, "", "state=Leaked"); !strings.Contains(output, app.ID) {
			return fmt.Errorf("%s", output)
		}
		return nil
	})
	eventually(t, shortTimeout, "the pods of the cluster are reported", func() error {
		if output := commands.typed(t, "", "/v1/clusters/$cluster"); !strings.Contains(output, `"reported":`) {
			return fmt.Errorf("%s", output)
		}
		return nil
	})
}

func TestTheCommandOfThePlatformTeamsPageResetsADeniedApplication(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("wrong", "typo", "Always", "sleep 1000"))
	n.waitForReason(t, "wrong", podmeta.ReasonBreakerOpenDenied)
	correctPermission(t, "typo-db")
	wrong := n.get(t, "wrong")
	if output := n.platformCommands(t).typed(t, applications(t, wrong)[0].ID, "/reset"); !strings.Contains(output, string(api.Requested)) {
		t.Errorf("reset: %s", output)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/wrong", "--timeout=60s")
}

func TestTheCommandsOfTheApplicationTeamsPageWork(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, enabled)
	n.mustApply(t, podWith("wrong", "wrong", "Always", "sleep 1000"))
	n.waitForReason(t, "wrong", podmeta.ReasonBreakerOpenDenied)
	all := documentedCommands(t, "permission/application-team.md", "Reset the breaker")
	begin := slices.IndexFunc(all, func(line string) bool { return strings.Contains(line, " port-forward ") })
	names := []string{"shop", n.name, "web-0", "wrong", "my-account", "editor"}
	n.runScript(t, all[:begin], names...)
	eventually(t, shortTimeout, "the rights are known", func() error {
		r, err := n.Run(t.Context(), "auth", "can-i", "reset", "pods/wrong", "--subresource=permission", "--as=system:serviceaccount:"+n.name+":editor")
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("%s", r)
		}
		return err
	})
	output := n.runScript(t, all[begin:], names...)
	if !strings.Contains(output, `"pod":"wrong"`) {
		t.Errorf("%s", output)
	}
	n.waitForEvent(t, "wrong", podmeta.ReasonBreakerClosed)
	if p := n.get(t, "wrong"); p.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", p.Status.Phase)
	}
}

// correctPermission corrects a permission with invalid parameters.
func correctPermission(t *testing.T, name string) {
	t.Helper()
	p := api.Permission{Meta: api.Meta{Name: name, Owner: setup.Owner}, Provider: "double", Parameters: map[string]string{"name": name}}
	if err := testCluster.Replace(t.Context(), setup.Object{Kind: "permissions", Body: p}, name); err != nil {
		t.Fatal(err)
	}
}
