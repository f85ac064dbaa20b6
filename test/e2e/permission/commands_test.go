//go:build e2e

package permission

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// commands are what a section of a document says to type.
func commands(t *testing.T, document, section string) []string {
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

// typed runs commands in a shell, in the test's namespace, as they stand but for
// the names of the example.
func (n *namespace) typed(t *testing.T, lines []string, names ...string) string {
	t.Helper()
	script := "set -euo pipefail\ntrap 'kill $(jobs -p)' EXIT\n" + strings.NewReplacer(names...).Replace(strings.Join(lines, ""))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Config())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// What the documents say to type works to the letter.
func TestTheCommandsOfThePlatformTeamsPageWork(t *testing.T) {
	n := newNamespace(t, enabled)
	all := commands(t, "permission/centre.md", "Operate")
	begin, rest := all[:3], all[3:]
	typed := func(id, what string) string {
		t.Helper()
		for _, line := range rest {
			if strings.Contains(line, what) {
				return n.typed(t, append(begin[:len(begin):len(begin)], line), "shop", n.name, "web-0", "web", "$id", id)
			}
		}
		t.Fatalf("nothing is said of %s", what)
		return ""
	}
	n.applied(t, podWith("web", "web", "Always", "sleep 1000"))
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	p := n.get(t, "web")
	app := applications(t, p)[0]
	if said := typed("", "pod=web-0"); !strings.Contains(said, app.ID) {
		t.Errorf("the pod's applications: %s", said)
	}
	if said := typed(app.ID, "/history"); !strings.Contains(said, `"to":"Granted"`) {
		t.Errorf("its history: %s", said)
	}
	faults(t, provider.Faults{Status: http.StatusBadGateway})
	typed(app.ID, "/revoke")
	until(t, soon, "it is leaked", func() error {
		if said := typed("", "state=Leaked"); !strings.Contains(said, app.ID) {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
	faults(t, provider.Faults{})

	n.applied(t, podWith("wrong", "typo", "Always", "sleep 1000"))
	n.untilReason(t, "wrong", names.ReasonBreakerOpenDenied)
	mend(t, "typo-db")
	wrong := n.get(t, "wrong")
	if said := typed(applications(t, wrong)[0].ID, "/reset"); !strings.Contains(said, string(api.Requested)) {
		t.Errorf("the reset: %s", said)
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/wrong", "--timeout=60s")
}

func TestTheCommandsOfTheApplicationTeamsPageWork(t *testing.T) {
	n := newNamespace(t, enabled)
	n.applied(t, podWith("wrong", "wrong", "Always", "sleep 1000"))
	n.untilReason(t, "wrong", names.ReasonBreakerOpenDenied)
	n.run(t, "create", "serviceaccount", "editor")
	n.run(t, "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+n.name+":editor")
	until(t, soon, "roles are aggregated", func() error {
		r, err := n.Run(t.Context(), "auth", "can-i", "reset", "pods/wrong", "--subresource=permission", "--as=system:serviceaccount:"+n.name+":editor")
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("%s", r)
		}
		return err
	})
	said := n.typed(t, commands(t, "permission/application-team.md", "Reset the breaker"), "shop", n.name, "web-0", "wrong", "my-account", "editor")
	if !strings.Contains(said, `"pod":"wrong"`) {
		t.Errorf("%s", said)
	}
	n.untilEvent(t, "wrong", names.ReasonBreakerClosed)
	if p := n.get(t, "wrong"); p.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", p.Status.Phase)
	}
}

// mend rights a permission that is registered wrong.
func mend(t *testing.T, name string) {
	t.Helper()
	p := api.Permission{Meta: api.Meta{Name: name, Owner: setup.Owner}, Provider: "double", Parameters: map[string]string{"name": name}}
	if err := bed.Replace(t.Context(), setup.Object{Kind: "permissions", Body: p}, name); err != nil {
		t.Fatal(err)
	}
}
