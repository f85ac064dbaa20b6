//go:build controlplane

package attack

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// web is a Deployment whose pods are Pending.
const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}}}`

// A saved template counts as a version that succeeded. So a planted one would be admitted
// although the workload is suspended.
func TestASavedTemplateCannotBePlanted(t *testing.T) {
	f := newFixture(t)
	const only = "only Breakwater writes ControllerRevisions"
	planted := `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: NAME, labels: {LABEL: u}}, revision: 1, data: {spec: {template: {}}}}`
	apply := func(name, label string) string {
		return strings.NewReplacer("NAME", name, "LABEL", label).Replace(planted)
	}
	f.save(t, f.namespace)
	kubectl(t, apply("other", "app"), "apply", "-n", f.namespace, "-f", "-")
	impersonation.ExpectBy(t, attacker, only, apply("planted", "app.ops.cloud.alipay.com/history-of"), "create", "-n", f.namespace, "-f", "-")
	for _, tc := range []struct{ name, patch, want string }{
		{"saved", `{"revision":2}`, only},
		{"saved", `{"metadata":{"annotations":{"admission-webhook-altershield.antgroup.com/version":"b"}}}`, only},
		{"saved", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":"v"}}}`, only},
		{"saved", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":null}}}`, only},
		{"saved", `{"metadata":{"finalizers":["a.example/b"]}}`, ""},
		{"other", `{"metadata":{"labels":{"app.ops.cloud.alipay.com/history-of":"v"}}}`, only},
		{"other", `{"revision":2}`, ""},
	} {
		impersonation.ExpectBy(t, attacker, tc.want, "", "patch", "-n", f.namespace, "controllerrevision", tc.name, "--type", "merge", "-p", tc.patch)
	}
}

// Pods of an edited ReplicaSet would run an unjudged template, even while the Deployment is
// suspended.
func TestTheTemplateOfAReplicaSetCannotBeChanged(t *testing.T) {
	f := newFixture(t)
	elsewhere := f.newNamespace(t, nil)
	for _, namespace := range []string{f.namespace, elsewhere} {
		kubectl(t, web, "apply", "-n", namespace, "-f", "-")
		kubectl(t, "", "wait", "-n", namespace, "--for=create", "--timeout=60s", "replicaset", "-l", "app=web")
	}
	set := func(namespace string) string {
		return strings.TrimSpace(kubectl(t, "", "get", "replicaset", "-n", namespace, "-l", "app=web", "-o", "name"))
	}
	image := `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`
	patch := func(by, want, namespace, body string) {
		t.Helper()
		impersonation.ExpectBy(t, by, want, "", "patch", "-n", namespace, set(namespace), "--type", "strategic", "-p", body)
	}
	patch(attacker, "Change Deployment web instead", f.namespace, image)
	patch(attacker, "", f.namespace, `{"metadata":{"annotations":{"a":"b"}}}`)
	patch(attacker, "", elsewhere, image)
	kubectl(t, "", "create", "rolebinding", "bypass", "-n", f.namespace, "--clusterrole=breakwater-bypass", "--user="+attacker)
	patch(attacker, "", f.namespace, image)
}

// The change is not denied, because some controllers update pods in place.
func TestAnImageThatIsChangedInAPodIsReported(t *testing.T) {
	f := newFixture(t)
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`,
		"apply", "-n", f.namespace, "-f", "-")
	out, err := exec.CommandContext(t.Context(), "kubectl", "set", "image", "-n", f.namespace, "pod/web", "app=evil", "--as", attacker).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the image of a running pod was changed") {
		t.Errorf("%v: %s, want a warning", err, out)
	}
}

// The record of a rollback names who requested it.
func TestARollbackRequestNamesOnlyItsUser(t *testing.T) {
	f := newFixture(t)
	kubectl(t, web, "apply", "-n", f.namespace, "-f", "-")
	const other = "must begin with"
	for request, want := range map[string]string{
		`{"user":"mallory","attempt":1}`:                    "",
		`{"user":"jane","attempt":1}`:                       other,
		`{"attempt":1}`:                                     other,
		`{"user":"mallory","attempt":1,"user":"jane"}`:      other,
		`{"user":"mallory","attempt":1,"User":"jane"}`:      other,
		`{"user":"mallory","attempt":1,"\u0075ser":"jane"}`: other,
		`{"user":"mallory","attempt":1,"uſer":"jane"}`:      other,
		`{"user":"mallory2","attempt":1}`:                   other,
	} {
		impersonation.ExpectBy(t, attacker, want, "", "annotate", "--overwrite", "-n", f.namespace, "deployment", "web",
			"altershield.defense.antgroup.com/rollback-request="+request)
	}
	impersonation.Expect(t, "openapi", "", "patch", "-n", f.namespace, "deployment", "web", "--type", "merge",
		"-p", `{"metadata":{"annotations":{"altershield.defense.antgroup.com/rollback-request":"{\"user\":\"jane\",\"attempt\":1}"}}}`)
}
