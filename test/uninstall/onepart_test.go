//go:build controlplane

package uninstall

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked has what each part writes to objects of users: part permission the finalizer, part protection the label of the
// namespace and the PodDisruptionBudget, part change the label of the Deployment.
const marked = `
apiVersion: v1
kind: Namespace
metadata: {name: parts, labels: {policy.breakwater.dev/guarded: "true"}}
---
apiVersion: v1
kind: Pod
metadata: {name: granted, namespace: parts, finalizers: [stke.io/podpermission-protection]}
spec: {containers: [{name: app, image: app}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: generated, namespace: parts, labels: {app.kubernetes.io/managed-by: breakwater}}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: parts, labels: {admission-webhook-altershield.antgroup.com/version: v1}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

// marks lists the marks of each part.
func marks(t *testing.T) map[string]string {
	t.Helper()
	get := func(kind, name, path string) string {
		return strings.TrimSpace(kubectl(t, "", "get", kind, name, "-n", "parts", "--ignore-not-found", "-o", "jsonpath="+path))
	}
	return map[string]string{
		"permission": get("pod", "granted", "{.metadata.finalizers}"),
		"protection": get("namespace", "parts", "{.metadata.labels.policy\\.breakwater\\.dev/guarded}") + get("poddisruptionbudget", "generated", " {.metadata.name}"),
		"change":     get("deployment", "web", "{.metadata.labels}"),
	}
}

// installed lists the objects of all parts, and whatever else a snapshot has.
func installed(t *testing.T) []string {
	t.Helper()
	objects := snapshot(t) + kubectl(t, "", "get", "namespaces,configmaps,secrets,services,serviceaccounts,persistentvolumeclaims,networkpolicies", "-A",
		"-l", "app.kubernetes.io/part-of=breakwater", "-o", "custom-columns=:.kind,:.metadata.name")
	return strings.Split(objects, "\n")
}

// Its webhooks would deny requests, and the namespace has the processes and the record of grants of the others.
func TestOnePartIsRemovedAndTheOthersStay(t *testing.T) {
	kubectl(t, marked, "apply", "--server-side", "-f", "-")
	kubectl(t, "", "apply", "--server-side", "-f", "../../config/protection/000-namespace.yaml")
	steps := []struct{ part, folder string }{{"protection", "config/protection"}, {"change", "config/core"}, {"permission", "config/permission"}}
	var before [][]string
	for _, s := range steps {
		before = append(before, installed(t))
		if err := plane.Install(t.Context(), s.folder); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all")
	want := marks(t)
	for i := len(steps) - 1; i >= 0; i-- {
		part := steps[i].part
		all := installed(t)
		if out := uninstall(t, 0, "--part", part); !strings.Contains(out, "altershieldoperator-system, which stays") {
			t.Errorf("%s: the preview says:\n%s", part, out)
		}
		if diff := cmp.Diff(all, installed(t)); diff != "" {
			t.Fatalf("%s: the preview changed something:\n%s", part, diff)
		}
		uninstall(t, 0, "--yes", "--part", part)
		if diff := cmp.Diff(before[i], installed(t)); diff != "" {
			t.Errorf("%s: - before its installation, + after its removal:\n%s", part, diff)
		}
		want[part] = ""
		if diff := cmp.Diff(want, marks(t)); diff != "" {
			t.Errorf("%s: marks of the parts (- want, + got):\n%s", part, diff)
		}
	}
	uninstall(t, 0, "--yes")
	kubectl(t, "", "delete", "namespace", "parts", "--wait=false")
}
