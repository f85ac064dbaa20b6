//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

// installCRD installs a CRD until the test ends.
func (n *namespace) installCRD(t *testing.T, kind, plural, version string) {
	t.Helper()
	name := plural + ".apps.kruise.io"
	n.cleanup(t, "delete", "crd", name, "--ignore-not-found", "--timeout=60s")
	n.apply(t, strings.ReplaceAll(kruiseCRD(kind, plural, version), "scope: Namespaced", "scope: "+scopeOf(kind)))
	n.run(t, "wait", "--for=condition=Established", "crd/"+name, "--timeout=30s")
}

func scopeOf(kind string) string {
	if kind == "SidecarSet" || kind == "Fleet" {
		return "Cluster"
	}
	return "Namespaced"
}

// The policies cover the workloads of OpenKruise.
func TestAProtectedWorkloadOfOpenKruiseIsNotDeletedWhileItHasReplicas(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	useKruise(t)
	n.installCRD(t, "SidecarSet", "sidecarsets", "v1alpha1")
	n.installCRD(t, "Rocket", "rockets", "v1")
	n.installCRD(t, "Fleet", "fleets", "v1")
	for _, tc := range []struct{ resource, version, kind string }{
		{"clonesets", "v1alpha1", "CloneSet"}, {"statefulsets", "v1beta1", "StatefulSet"}, {"uniteddeployments", "v1alpha1", "UnitedDeployment"},
	} {
		resource := tc.resource + ".apps.kruise.io"
		for spec, denial := range map[string]string{"{replicas: 2}": "2 pods would be deleted with it", "{}": "1 pod would be deleted with it"} { // unset means 1
			n.apply(t, fmt.Sprintf(`{apiVersion: apps.kruise.io/%s, kind: %s, metadata: {name: web, labels: {%s: "true"}}, spec: %s}`, tc.version, tc.kind, disableCascadingLabel, spec))
			for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
				n.checkDenied(t, denial, append([]string{"delete", resource, "web", "--wait=false"}, flags...)...)
			}
			n.checkDenied(t, denial, "delete", resource, "--all", "--wait=false")
		}
		n.run(t, "patch", resource, "web", "--type=merge", "-p", `{"spec":{"replicas":0}}`)
		n.run(t, "delete", resource, "web")
	}

	for _, tc := range []struct {
		kind, spec string
		warns      bool
	}{
		{"v1alpha1, kind: CloneSet", "{}", false}, {"v1alpha1, kind: SidecarSet", "{}", false},
		{"v1, kind: Rocket", "{replicas: 0}", false}, {"v1, kind: Rocket", "{}", true}, {"v1, kind: Fleet", "{size: 3}", true},
	} {
		r := n.Try(t, fmt.Sprintf("{apiVersion: apps.kruise.io/%s, metadata: {name: web, labels: {%s: Cascading}}, spec: %s}", tc.kind, deleteProtectionLabel, tc.spec),
			"create", "-n", n.name, "--dry-run=server", "-f", "-")
		if r.Code != 0 || strings.Contains(r.Stderr, "web is not protected from deletion") != tc.warns {
			t.Errorf("%s with spec %s: %s", tc.kind, tc.spec, r)
		}
	}

	// Other kinds are protected only with spec.replicas. A Fleet is cluster-scoped.
	for kind, resource := range map[string]string{"Rocket": "rockets.apps.kruise.io", "Fleet": "fleets.apps.kruise.io"} {
		n.apply(t, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1, kind: %s, metadata: {name: web, labels: {%s: "true"}}, spec: {replicas: 2}}`, kind, disableCascadingLabel))
		n.checkDenied(t, "2 pods would be deleted with it", "delete", resource, "web")
		n.run(t, "patch", resource, "web", "--type=merge", "-p", `{"spec":{"replicas":null}}`)
		n.run(t, "delete", resource, "web")
	}

	sidecars := "sidecarsets.apps.kruise.io"
	n.apply(t, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: web, labels: {%s: "true"}}, spec: {}}`, disableCascadingLabel))
	matched := func(pods int) {
		n.run(t, "patch", sidecars, "web", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status":{"matchedPods":%d}}`, pods))
	}
	matched(3)
	for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
		n.checkDenied(t, "3 pods", append([]string{"delete", sidecars, "web", "--wait=false"}, flags...)...)
	}
	n.checkDenied(t, "3 pods", "delete", sidecars, "--all", "--wait=false")
	matched(0)
	n.run(t, "delete", sidecars, "web")
}

// Each way to delete a definition deletes its objects, so each is denied.
func TestAProtectedDefinitionIsNotDeletedInAnyWay(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	name := "crontabs." + n.name + ".example.com"
	n.cleanup(t, "delete", "crd", name, "--ignore-not-found")
	n.cleanup(t, "label", "crd", name, disableCascadingLabel+"-")
	n.cleanup(t, "delete", "clusterrole", n.name+"-counts", "--ignore-not-found")
	n.apply(t, fmt.Sprintf(crontabCRD, n.name))
	n.apply(t, fmt.Sprintf(crontabClusterRole, n.name))
	n.run(t, "label", "crd", name, "e2e="+n.name)
	n.run(t, "wait", "--for=condition=Established", "crd", name, "--timeout=60s")
	n.await(t, "a CronTab exists", func() error {
		if r := n.Try(t, fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: CronTab, metadata: {name: a}}", n.name), "apply", "-f", "-"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	const denial = "1 object would be deleted with it"
	n.await(t, "the webhook may list CronTabs", func() error {
		if r := n.try(t, "delete", "crd", name, "--dry-run=server"); !strings.Contains(r.Stderr, denial) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--cascade=orphan"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
		n.checkDenied(t, denial, append([]string{"delete", "crd", name, "--wait=false"}, flags...)...)
	}
	n.checkDenied(t, denial, "delete", "crd", "-l", "e2e="+n.name, "--wait=false")
	n.checkDenied(t, denial, "delete", "--raw", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?labelSelector=e2e%3D"+n.name) // deletecollection
	n.run(t, "get", "crontabs."+n.name+".example.com", "a")
}

// The Helm chart of OpenKruise has a definition of the same name, and deletes it with its release.
func TestTheDefinitionOfBudgetsIsNotDeletedWhileABudgetExists(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, budgetManifest("maxUnavailable: 1"))
	n.checkDenied(t, "would be deleted with it", "delete", "crd", "podunavailablebudgets.policy.kruise.io", "--dry-run=server")
}

// Argo Rollouts runs 1 pod if spec.replicas is unset.
func TestAProtectedRolloutWithoutReplicasIsNotDeleted(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	crd := strings.ReplaceAll(kruiseCRD("Rollout", "rollouts", "v1alpha1"), "apps.kruise.io", "argoproj.io")
	n.cleanup(t, "delete", "crd", "rollouts.argoproj.io", "--ignore-not-found", "--timeout=60s")
	n.apply(t, crd)
	n.run(t, "wait", "--for=condition=Established", "crd/rollouts.argoproj.io", "--timeout=30s")
	n.apply(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, labels: {`+disableCascadingLabel+`: "true"}}, spec: {}}`)
	n.checkDenied(t, "1 pod would be deleted with it", "delete", "rollouts.argoproj.io", "web", "--wait=false")
	n.run(t, "patch", "rollouts.argoproj.io", "web", "--type=merge", "-p", `{"spec":{"replicas":0}}`)
	n.run(t, "delete", "rollouts.argoproj.io", "web")
}
