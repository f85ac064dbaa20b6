//go:build controlplane

package protection

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// kruiseCRD is a minimal CRD of a kind of OpenKruise. It keeps all fields and
// has no controller.
func kruiseCRD(kind, plural, version string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.apps.kruise.io},
 spec: {group: apps.kruise.io, scope: Namespaced, names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: kruise%[3]s},
  versions: [{name: %[4]s, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}},
   schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, kind, plural, strings.ToLower(kind), version)
}

// installKruiseCRDs installs the CRDs of OpenKruise, after the start of the controller.
var installKruiseCRDs = sync.OnceValue(func() error {
	for _, crd := range []struct{ kind, plural, version string }{
		{"CloneSet", "clonesets", "v1alpha1"}, {"StatefulSet", "statefulsets", "v1beta1"}, {"UnitedDeployment", "uniteddeployments", "v1alpha1"},
	} {
		ctx, manifest := context.Background(), kruiseCRD(crd.kind, crd.plural, crd.version)
		if _, err := (kubectl.Kubectl{}).Output(ctx, manifest, "apply", "-f", "-"); err != nil {
			return err
		}
		if _, err := (kubectl.Kubectl{}).Output(ctx, manifest, "wait", "--for=condition=Established", "--timeout=30s", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
})

func useKruise(t *testing.T) {
	t.Helper()
	if err := installKruiseCRDs(); err != nil {
		t.Fatal(err)
	}
}

// kruiseWorkload is a workload of OpenKruise; spec is added to replicas and
// selector.
func kruiseWorkload(version, kind, annotations, spec string) string {
	return fmt.Sprintf(`{apiVersion: apps.kruise.io/%s, kind: %s, metadata: {name: web, annotations: {%s}},
 spec: {replicas: 2, selector: {matchLabels: {app: web}}, %s}}`, version, kind, annotations, spec)
}

func TestWorkloadsOfOpenKruiseHaveGeneratedBudgets(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	useKruise(t)
	const on = `policy.kruise.io/generate-pub: "true"`
	n.apply(t, kruiseWorkload("v1alpha1", "CloneSet", on+`, policy.kruise.io/generate-pdb: "true", policy.kruise.io/generate-pdb-maxUnavailable: "50%"`, "updateStrategy: {maxUnavailable: 1}"))
	n.awaitLimitOf(t, "pub", "cloneset-web", "1")
	n.awaitLimitOf(t, "pdb", "cloneset-web", "50%")

	// The budget follows the workload and is restored after changes.
	n.run(t, "patch", "clonesets.apps.kruise.io", "web", "--type=merge", "-p", `{"spec":{"updateStrategy":{"maxUnavailable":3}}}`)
	n.awaitLimitOf(t, "pub", "cloneset-web", "3")
	n.run(t, "patch", "pub", "cloneset-web", "--type=merge", "-p", `{"spec":{"maxUnavailable":9}}`)
	n.awaitLimitOf(t, "pub", "cloneset-web", "3")
	n.run(t, "annotate", "clonesets.apps.kruise.io", "web", "policy.kruise.io/generate-pub-minAvailable=2")
	n.awaitLimitOf(t, "pub", "cloneset-web", "2")

	// The budget covers the pods that the CloneSet owns.
	uid := n.run(t, "get", "clonesets.apps.kruise.io", "web", "-o", "jsonpath={.metadata.uid}")
	for _, pod := range []string{"web-a", "web-b"} {
		n.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: web}, ownerReferences:
 [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web, uid: %s, controller: true}]}, spec: %s}`, pod, uid, simulatedPodSpec))
	}
	n.run(t, "wait", "--for=condition=Ready", "pod/web-a", "pod/web-b", "--timeout=60s")
	n.run(t, "wait", "--for=condition=Guarding", "pub/cloneset-web", "--timeout=60s")
	n.checkDenied(t, "is denied by PodUnavailableBudget cloneset-web", "delete", "pod", "web-a")

	n.apply(t, kruiseWorkload("v1beta1", "StatefulSet", on, `updateStrategy: {rollingUpdate: {maxUnavailable: "30%"}}`))
	n.apply(t, kruiseWorkload("v1alpha1", "UnitedDeployment", on, `template: {deploymentTemplate: {spec: {strategy: {rollingUpdate: {maxUnavailable: 3}}}}}`))
	n.awaitLimitOf(t, "pub", "advancedstatefulset-web", "30%")
	n.awaitLimitOf(t, "pub", "uniteddeployment-web", "3")

	for _, resource := range []string{"clonesets", "statefulsets", "uniteddeployments"} {
		n.run(t, "delete", resource+".apps.kruise.io", "web", "--timeout=60s")
	}
	for _, name := range []string{"cloneset-web", "advancedstatefulset-web", "uniteddeployment-web"} {
		n.awaitLimitOf(t, "pub", name, "")
	}
	n.awaitLimitOf(t, "pdb", "cloneset-web", "")
}

func TestAStatefulSetHasGeneratedBudgets(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, annotations: {policy.kruise.io/generate-pub: "true",
  policy.kruise.io/generate-pub-maxUnavailable: "1", policy.kruise.io/generate-pdb: "true", policy.kruise.io/generate-pdb-minAvailable: "1"}},
 spec: {replicas: 2, serviceName: web, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: `+simulatedPodSpec+`}}}`)
	n.awaitLimitOf(t, "pub", "statefulset-web", "1")
	n.awaitLimitOf(t, "pdb", "statefulset-web", "1")
	n.run(t, "delete", "statefulset", "web", "--timeout=60s")
	n.awaitLimitOf(t, "pub", "statefulset-web", "")
	n.awaitLimitOf(t, "pdb", "statefulset-web", "")
}

func TestTheDefaultOfTheClusterAppliesWithoutOtherLimits(t *testing.T) {
	n := newNamespace(t)
	set := func(data string) []string {
		return append(append([]string{}, system...), "patch", "configmap", "config-protection-generate", "--type=merge", "-p", `{"data":`+data+`}`)
	}
	n.cleanup(t, set(`{"max-unavailable":"25%","min-available":null}`)...)
	n.apply(t, deploymentManifest(4, "{type: Recreate}"))
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pdb=true")
	n.awaitLimit(t, "pub", "25%")
	n.awaitLimit(t, "pdb", "25%")
	for value, text := range map[string]string{
		`{"max-unavailable":"few"}`:   "write a number from 0",
		`{"max-unavailable":"101%"}`:  "write a number from 0",
		`{"min-available":"1"}`:       "exclude each other",
		`{"maxUnavailable":"1"}`:      "there is no other key",
		`{"max-unavailable":"-1"}`:    "write a number from 0",
		`{"max-unavailable":"1 pod"}`: "write a number from 0",
	} {
		if r := n.try(t, set(value)...); r.Code == 0 || !strings.Contains(r.Stderr, text) {
			t.Errorf("%s is not denied with %q: %s", value, text, r)
		}
	}
	n.run(t, set(`{"max-unavailable":"10%"}`)...)
	n.awaitLimit(t, "pub", "10%")
	n.awaitLimit(t, "pdb", "10%")
	n.run(t, set(`{"max-unavailable":null,"min-available":"3"}`)...)
	n.awaitLimit(t, "pub", "3")
	n.awaitLimit(t, "pdb", "3")
}
