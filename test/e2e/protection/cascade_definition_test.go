//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestShadowModeAllowsTheDeletionOfAProtectedNamespace(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "label", "namespace", n.name, deleteProtectionLabel+"=Cascading")
	n.run(t, "annotate", "namespace", n.name, "policy.breakwater.dev/shadow=true")
	n.apply(t, strings.Replace(protectedDeployment, disableCascadingLabel, "test.breakwater.dev/other", 1))
	n.await(t, "a pod exists", func() error {
		if n.list(t, "pod", metav1.ListOptions{}, itemNames) == "" {
			return errors.New("none")
		}
		return nil
	})
	if r := n.try(t, "delete", "namespace", n.name, "--wait=false"); r.Code != 0 || !strings.Contains(r.Stderr, "would have been denied") {
		t.Errorf("%s", r)
	}
}

const crontabCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.%[1]s.example.com, labels: {` + disableCascadingLabel + `: "true"}}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const crontabClusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-counts, labels: {policy.breakwater.dev/count-custom-resources: "true"}}
rules: [{apiGroups: [%[1]s.example.com], resources: [crontabs], verbs: [list]}]
`

// deleteDefinition deletes a protected definition and the ClusterRole that counts its objects after the test, if they exist.
func (n *namespace) deleteDefinition(t *testing.T, crd string) {
	n.cleanup(t, "delete", "clusterrole", n.name+"-counts", "--ignore-not-found")
	n.cleanup(t, "delete", "crd", crd, "--ignore-not-found")
	n.cleanup(t, "label", "crd", "--field-selector", "metadata.name="+crd, disableCascadingLabel+"-")
}

func TestAProtectedDefinitionIsNotDeletedWhileItHasObjects(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	crd := "crontabs." + n.name + ".example.com"
	n.deleteDefinition(t, crd)
	n.apply(t, fmt.Sprintf(crontabCRD, n.name))
	n.run(t, "wait", "--for=condition=Established", "crd", crd, "--timeout=60s")
	// A webhook that may not list the objects denies the deletion.
	n.checkDenied(t, "policy.breakwater.dev/count-custom-resources", "delete", "crd", crd)
	n.apply(t, fmt.Sprintf(crontabClusterRole, n.name))
	n.await(t, "a CronTab exists", func() error {
		r, err := n.RunWithInput(t.Context(), fmt.Sprintf("{apiVersion: %s.example.com/v1, kind: CronTab, metadata: {name: a}}", n.name), "apply", "-f", "-")
		if err != nil || r.Code != 0 {
			return fmt.Errorf("%s, %w", r, err)
		}
		return nil
	})
	n.await(t, "the webhook may list CronTabs", func() error {
		if r := n.try(t, "delete", "crd", crd, "--dry-run=server"); !strings.Contains(r.Stderr, "1 object would be deleted with it") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	n.run(t, "delete", "crontabs."+n.name+".example.com", "a")
	n.run(t, "delete", "crd", crd, "--timeout=60s")
}

// The user who removes a protection gets a warning.
func TestRemovingAProtectionWarns(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, protectedDeployment)
	r := n.try(t, "label", "deployment", "web", disableCascadingLabel+"-")
	if r.Code != 0 || !strings.Contains(r.Stderr, "less protected from deletion from now on") {
		t.Errorf("%s", r)
	}
	if r := n.try(t, "label", "deployment", "web", "team=a"); r.Code != 0 || strings.Contains(r.Stderr, "Warning") {
		t.Errorf("%s", r)
	}
}

// A mistyped value would protect nothing, and only the deletion would show it.
func TestALabelThatDoesNotProtectWarns(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, deploymentManifest(0, "{}"))
	for label, want := range map[string]string{
		disableCascadingLabel + "=yes":       `"yes" does not protect: write true`,
		disableCascadingLabel + "=":          `"" does not protect: write true`,
		disableCascadingLabel + "=false":     "",
		disableCascadingLabel + "=true":      "",
		deleteProtectionLabel + "=always":    `"always" does not protect: write Always or Cascading`,
		deleteProtectionLabel + "=Cascading": "",
	} {
		r := n.try(t, "label", "deployment", "web", label, "--dry-run=server")
		if r.Code != 0 || !strings.Contains(r.Stderr, want) || want == "" && strings.Contains(r.Stderr, "Warning") {
			t.Errorf("%s: %s", label, r)
		}
	}
	r := n.Try(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"+deleteProtectionLabel+": always}}}", "create", "-f", "-")
	if r.Code != 0 || !strings.Contains(r.Stderr, "does not protect") {
		t.Errorf("%s", r)
	}
	r = n.try(t, "label", "deployment", "web", disableCascadingLabel+"=yes", deleteProtectionLabel+"=always", "--dry-run=server")
	if r.Code != 0 || strings.Count(r.Stderr, `"yes" does not protect`) != 1 || strings.Count(r.Stderr, `"always" does not protect`) != 1 {
		t.Errorf("both labels: %s", r)
	}
}

// Nothing counts the dependent objects of these kinds, so only Always protects them.
func TestALabelThatDoesNotProtectTheKindWarns(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	const always = "write policy.kruise.io/delete-protection: Always"
	for _, tc := range []struct{ resource, label, want string }{
		{"service", disableCascadingLabel + "=true", "services web is not protected from deletion: " + always},
		{"service", disableCascadingLabel + "=false", ""},
		{"service", deleteProtectionLabel + "=Cascading", "services web is not protected from deletion: " + always},
		{"service", deleteProtectionLabel + "=Always", ""},
		{"namespace", disableCascadingLabel + "=true", ""},
	} {
		name := "web"
		if tc.resource == "namespace" {
			name = n.name
		}
		r := n.try(t, "label", tc.resource, name, tc.label, "--dry-run=server")
		if r.Code != 0 || !strings.Contains(r.Stderr, tc.want) || tc.want == "" && strings.Contains(r.Stderr, "Warning") {
			t.Errorf("%s of a %s: %s", tc.label, tc.resource, r)
		}
	}
	r := n.try(t, "label", "service", "web", disableCascadingLabel+"=true", deleteProtectionLabel+"=Cascading", "--dry-run=server")
	if r.Code != 0 || strings.Count(r.Stderr, always) != 1 {
		t.Errorf("both labels: %s", r)
	}
	for _, manifest := range []string{
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, LABEL}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: web, LABEL}, spec: " + simulatedPodSpec + "}",
		"{apiVersion: v1, kind: Secret, metadata: {name: web, LABEL}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: web, LABEL}, spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, LABEL}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}",
	} {
		r := n.Try(t, strings.Replace(manifest, "LABEL", `labels: {`+disableCascadingLabel+`: "true"}`, 1), "create", "-n", n.name, "--dry-run=server", "-f", "-")
		if r.Code != 0 || !strings.Contains(r.Stderr, always) {
			t.Errorf("%s: %s", manifest, r)
		}
	}
	// Dependent objects of a DaemonSet are counted. The labels of Endpoints are copies.
	for _, manifest := range []string{
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, LABEL}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}",
		"{apiVersion: v1, kind: Endpoints, metadata: {name: web, LABEL}}",
	} {
		r := n.Try(t, strings.Replace(manifest, "LABEL", `labels: {`+disableCascadingLabel+`: "true"}`, 1), "create", "-n", n.name, "--dry-run=server", "-f", "-")
		if r.Code != 0 || strings.Contains(r.Stderr, always) {
			t.Errorf("%s: %s", manifest, r)
		}
	}
	// Its controller may have copied the label.
	r = n.Try(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {"+deleteProtectionLabel+": Cascading}, ownerReferences: "+
		"[{apiVersion: v1, kind: ConfigMap, name: a, uid: a, controller: true}]}}", "create", "-n", n.name, "--dry-run=server", "-f", "-")
	if r.Code != 0 || strings.Contains(r.Stderr, "Warning") {
		t.Errorf("%s", r)
	}
}

// For some kinds, a write of the status can change labels.
func TestRemovingAProtectionThroughASubresourceWarns(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, protectedWorkload("StatefulSet", "apps/v1", "replicas: 1"))
	n.apply(t, "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {"+deleteProtectionLabel+": Always}}, spec: {ports: [{port: 80}]}}")
	n.run(t, "label", "namespace", n.name, disableCascadingLabel+"=true")
	finalized := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q},"spec":{"finalizers":["kubernetes"]}}`, n.name)
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null}}}`, disableCascadingLabel, deleteProtectionLabel)
	const warning = "less protected from deletion from now on"
	for _, object := range []string{"statefulset/web", "service/web", "namespace/" + n.name} {
		if r := n.try(t, "patch", object, "--subresource=status", "--type=merge", "-p", patch); r.Code != 0 || !strings.Contains(r.Stderr, warning) {
			t.Errorf("the status of %s: %s", object, r)
		}
	}
	n.run(t, "label", "namespace", n.name, disableCascadingLabel+"=true")
	if r := n.Try(t, finalized, "replace", "--raw", "/api/v1/namespaces/"+n.name+"/finalize", "-f", "-"); r.Code != 0 || !strings.Contains(r.Stderr, warning) {
		t.Errorf("the finalizers of a namespace: %s", r)
	}
	// A write of the status of a Deployment keeps its labels.
	n.apply(t, protectedDeployment)
	if r := n.try(t, "patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch); r.Code != 0 || strings.Contains(r.Stderr, "Warning") {
		t.Errorf("the status of a Deployment: %s", r)
	}
}

// Without the warning, only the denial of a deletion would show the missing right.
func TestProtectingADefinitionWarnsWhileItsObjectsCannotBeCounted(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	crd := "crontabs." + n.name + ".example.com"
	n.deleteDefinition(t, crd)
	const warning = "permit list with a ClusterRole that has the label policy.breakwater.dev/count-custom-resources=true"
	if r := n.Try(t, fmt.Sprintf(crontabCRD, n.name), "create", "-f", "-"); r.Code != 0 || !strings.Contains(r.Stderr, warning) {
		t.Errorf("a definition is created:\n%s", r)
	}
	n.run(t, "label", "crd", crd, disableCascadingLabel+"-")
	n.apply(t, fmt.Sprintf(crontabClusterRole, n.name))
	n.await(t, "no warning once the objects can be counted", func() error {
		r := n.try(t, "label", "crd", crd, disableCascadingLabel+"=true", "--dry-run=server")
		if r.Code != 0 || strings.Contains(r.Stderr, warning) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}
