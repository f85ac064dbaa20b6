//go:build e2e || controlplane

package protection

import (
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// An attacker who takes over the controller of part protection cannot remove the budgets of
// teams. The tests of generated budgets show that it can write those.
func TestTheServiceAccountOfProtectionControllerWritesOnlyGeneratedBudgets(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	const user = "system:serviceaccount:altershieldoperator-system:protection-controller"
	const only = "only budgets that it generates"
	const team = "{apiVersion: VERSION, kind: KIND, metadata: {name: NAME, labels: {LABELS}, ownerReferences: [OWNERS]}, " +
		"spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}"
	const owner, label = "{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}", "app.kubernetes.io/managed-by: breakwater"
	for _, kind := range []struct{ version, name string }{
		{"policy/v1", "PodDisruptionBudget"}, {"policy.kruise.io/v1alpha1", "PodUnavailableBudget"},
	} {
		budget := func(name, labels, owners string) string {
			return strings.NewReplacer("VERSION", kind.version, "KIND", kind.name, "NAME", name, "LABELS", labels, "OWNERS", owners).Replace(team)
		}
		create := func(want, manifest string) {
			t.Helper()
			impersonation.ExpectBy(t, user, want, manifest, "create", "-n", n.name, "-f", "-")
		}
		create("", budget("deployment-web", label, owner))
		create(only, budget("deployment-web", "", owner))
		create(only, budget("deployment-web", label, ""))
		create(only, budget("other", label, owner))
		create(only, budget("team", "", ""))

		// A budget of a team.
		n.apply(t, budget("team", "", ""))
		for patch, want := range map[string]string{
			`{"metadata":{"annotations":{"policy.breakwater.dev/probe":"a"}}}`:                             "",
			`{"metadata":{"annotations":{"a":"b"}}}`:                                                       only,
			`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"breakwater"}}}`:                        only,
			`{"spec":{"maxUnavailable":"100%"}}`:                                                           only,
			`{"spec":{"maxUnavailable":5},"metadata":{"annotations":{"policy.breakwater.dev/probe":"a"}}}`: only,
		} {
			impersonation.ExpectBy(t, user, want, "", "patch", "-n", n.name, kind.name, "team", "--type", "merge", "-p", patch)
		}
		impersonation.ExpectBy(t, user, only, "", "delete", "-n", n.name, kind.name, "team")

		// A generated budget whose workload was deleted with --cascade=orphan.
		n.apply(t, budget("deployment-web", label, ""))
		const reference = `"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"NAME","uid":"u","controller":true}]`
		for patch, want := range map[string]string{
			`{"metadata":{` + strings.Replace(reference, "NAME", "web", 1) + `},"spec":{"maxUnavailable":2}}`: "",
			`{"metadata":{` + strings.Replace(reference, "NAME", "other", 1) + `}}`:                           only,
			`{"spec":{"maxUnavailable":"100%"}}`:                                                              only,
		} {
			impersonation.ExpectBy(t, user, want, "", "patch", "-n", n.name, kind.name, "deployment-web", "--type", "merge", "-p", patch)
		}
		impersonation.ExpectBy(t, user, only, "", "delete", "-n", n.name, kind.name, "deployment-web")
		// A budget of a team has no label, also if its name is that of a generated one.
		n.run(t, "label", kind.name, "deployment-web", "app.kubernetes.io/managed-by-")
		impersonation.ExpectBy(t, user, only, "", "patch", "-n", n.name, kind.name, "deployment-web", "--type", "merge", "-p",
			`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"breakwater"},`+strings.Replace(reference, "NAME", "web", 1)+`}}`)
	}
}
