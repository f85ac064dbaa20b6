//go:build controlplane

package attack

import (
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// An attacker who takes over openapi or the controller cannot change the metadata by which
// other software, such as OpenKruise or a GitOps tool, treats a workload.
func TestTheServiceAccountOfOpenapiWritesOnlyRollbackRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, marked, "apply", "-n", f.namespace, "-f", "-")
	const only = "only the annotation altershield.defense.antgroup.com/rollback-request"
	for patch, want := range map[string]string{
		`{"metadata":{"annotations":{"altershield.defense.antgroup.com/rollback-request":"{}"}}}`:         "",
		`{"metadata":{"annotations":{"a":"b"}}}`:                                                          only,
		`{"metadata":{"annotations":{"team":null}}}`:                                                      only,
		`{"metadata":{"annotations":{"altershield.defense.antgroup.com/replay-request":"{}"}}}`:           only,
		`{"metadata":{"labels":{"a":"b"}}}`:                                                               only,
		`{"metadata":{"labels":{"team":null}}}`:                                                           only,
		`{"metadata":{"labels":{"policy.kruise.io/delete-protection":"Always"}}}`:                         only,
		`{"metadata":{"labels":{"altershield.defense.antgroup.com/defense-status":"processed","a":"b"}}}`: only,
	} {
		impersonation.Expect(t, "openapi", want, "patch", "-n", f.namespace, "deployment", "marked", "--type", "merge", "-p", patch)
	}
}

// marked is a Deployment with a label and an annotation of its team.
const marked = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: marked, labels: {team: a}, annotations: {team: a}}, spec: {replicas: 0,
 selector: {matchLabels: {app: marked}}, template: {metadata: {labels: {app: marked}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}`

func TestTheServiceAccountOfTheControllerKeepsTheMetadataOfOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	useRollouts(t)
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, marked, "apply", "-n", namespace, "-f", "-")
		kubectl(t, strings.Replace(marked, "apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout", 1), "apply", "-n", namespace, "-f", "-")
		kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: bare}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`, "apply", "-n", namespace, "-f", "-")
	}
	const workload, rollout, pod = "deployment/marked", "rollouts.argoproj.io/marked", "pod/bare"
	const others, optedIn = "labels and annotations of others", "only in namespaces that are opted in"
	for _, tc := range []struct{ namespace, object, patch, want string }{
		{f.namespace, workload, `{"metadata":{"labels":{"altershield.defense.antgroup.com/suspend":"1","altershield.defense.antgroup.com/defense-status":"processed"}}}`, ""},
		{f.namespace, workload, `{"metadata":{"annotations":{"altershield.defense.antgroup.com/hold":"{}","altershield.defense.antgroup.com/rollback":"{}"}}}`, ""},
		// Another webhook may add them in the same request.
		{f.namespace, workload, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b","team":"b"}}}`, ""},
		{f.namespace, workload, `{"metadata":{"labels":{"team":"b"}}}`, others},
		{f.namespace, workload, `{"metadata":{"labels":{"team":null}}}`, others},
		{f.namespace, workload, `{"metadata":{"annotations":{"team":null}}}`, others},
		{f.namespace, workload, `{"metadata":{"annotations":null}}`, others},
		{f.namespace, rollout, `{"metadata":{"labels":{"altershield.defense.antgroup.com/suspend":"1"},"annotations":{"a":"b","team":"b"}}}`, ""},
		{f.namespace, rollout, `{"metadata":{"labels":{"team":"b"}}}`, others},
		{f.namespace, rollout, `{"metadata":{"annotations":{"team":null}}}`, others},
		{elsewhere, rollout, `{"metadata":{"labels":{"a":"b"}}}`, optedIn},
		{f.namespace, pod, `{"metadata":{"labels":{"altershield.defense.antgroup.com/operate-finished":"true"}}}`, ""},
		{elsewhere, workload, `{"metadata":{"labels":{"altershield.defense.antgroup.com/suspend":"1"}}}`, optedIn},
		{elsewhere, workload, `{"metadata":{"labels":{"a":"b"}}}`, optedIn},
		{elsewhere, workload, `{"metadata":{"annotations":{"a":"b"}}}`, optedIn},
		{elsewhere, workload, `{"spec":{"paused":true}}`, optedIn},
		{elsewhere, pod, `{"metadata":{"labels":{"altershield.defense.antgroup.com/operate-finished":"true"}}}`, optedIn},
	} {
		t.Run(tc.namespace+" "+tc.object+" "+tc.patch, func(t *testing.T) {
			impersonation.Expect(t, "controller", tc.want, "patch", "-n", tc.namespace, tc.object, "--type", "merge", "-p", tc.patch)
		})
	}
}

// An attacker who takes over init-action-server cannot create a ConfigMap that another component
// of the system namespace reads.
func TestTheServiceAccountOfInitActionServerCreatesOnlyConfigMapsOfTheBreaker(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":init-action-server"
	for name, want := range map[string]string{
		"podpermission-breaker-3":       "",
		"podpermission-breaker-15":      "",
		"config-broker-2":               "only the ConfigMaps of the breaker",
		"podpermission-breaker-16":      "only the ConfigMaps of the breaker",
		"x-podpermission-breaker-3":     "only the ConfigMaps of the breaker",
		"podpermission-breaker-3.other": "only the ConfigMaps of the breaker",
	} {
		impersonation.ExpectBy(t, user, want, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}}`, "create", "-n", v1alpha1.SystemNamespace, "-f", "-")
	}
}
