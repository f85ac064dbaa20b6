//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// newServingObject creates an object of Serving below another one, as Serving does, and returns
// a reference to it.
func (n *namespace) newServingObject(t *testing.T, kind, name, owners, spec string) (reference string) {
	t.Helper()
	n.apply(t, fmt.Sprintf(`{apiVersion: serving.knative.dev/v1, kind: %s, metadata: {name: %s, ownerReferences: [%s]}, spec: %s}`, kind, name, owners, spec))
	uid := n.run(t, "get", strings.ToLower(kind)+"s.serving.knative.dev", name, "-o", "jsonpath={.metadata.uid}")
	return fmt.Sprintf("{apiVersion: serving.knative.dev/v1, kind: %s, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}", kind, name, uid)
}

// newKnativeService creates the Service web and its Configuration.
func (n *namespace) newKnativeService(t *testing.T) (configuration string) {
	t.Helper()
	const template = `{template: {spec: {containers: [{image: busybox}]}}}`
	return n.newServingObject(t, "Configuration", "web", n.newServingObject(t, "Service", "web", "", template), template)
}

// newRevision creates a Revision and its Deployment with simulated pods.
func (n *namespace) newRevision(t *testing.T, configuration, name string, pods int) {
	t.Helper()
	revision := n.newServingObject(t, "Revision", name, configuration, `{containers: [{image: busybox}]}`)
	uid := n.run(t, "get", "services.serving.knative.dev", "web", "-o", "jsonpath={.metadata.uid}")
	n.apply(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s-deployment,
 labels: {serving.knative.dev/service: web, serving.knative.dev/serviceUID: %[5]s}, ownerReferences: [%[2]s]},
 spec: {replicas: %[3]d, selector: {matchLabels: {serving.knative.dev/revision: %[1]s}},
 template: {metadata: {labels: {serving.knative.dev/revision: %[1]s, serving.knative.dev/service: web}}, spec: %[4]s}}}`, name, revision, pods, simulatedPodSpec, uid))
	n.run(t, "rollout", "status", "deployment", name+"-deployment", "--timeout=60s")
}

// routeTo sends all requests to a Revision.
func (n *namespace) routeTo(t *testing.T, revision string) {
	t.Helper()
	n.run(t, "patch", "services.serving.knative.dev", "web", "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"traffic":[{"revisionName":%q,"latestRevision":true,"percent":100}]}}`, revision))
}

// autoscale does what the autoscaler does.
func (n *namespace) autoscale(t *testing.T, revision string, pods int) {
	t.Helper()
	n.run(t, "scale", "deployment", revision+"-deployment", fmt.Sprintf("--replicas=%d", pods))
}

// The budget exists before Serving is installed.
func TestABudgetOfAKnativeServiceProtectsTheRevisionsWithTraffic(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.apply(t, knativeBudget("minAvailable: 2"))
	awaitNumbers(t, c, n.name, 0, 0, 0, 0)
	if err := plane.InstallServing(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.await(t, "the API server has Knative Services", func() error {
		if r := n.try(t, "get", "services.serving.knative.dev,configurations.serving.knative.dev,revisions.serving.knative.dev"); r.Code != 0 {
			return errors.New(r.Stderr)
		}
		return nil
	})
	configuration := n.newKnativeService(t)
	n.newRevision(t, configuration, "web-00001", 2)
	n.newRevision(t, configuration, "web-00002", 2)
	n.routeTo(t, "web-00001")
	awaitNumbers(t, c, n.name, 2, 2, 2, 0)
	n.awaitGuarding(t, shortTimeout)

	n.checkDenied(t, budgetDenial, "delete", "pod", n.revisionPods(t, "web-00001")[0])
	n.run(t, append([]string{"delete", "pod"}, n.revisionPods(t, "web-00002")...)...)

	n.checkDenied(t, budgetDenial, "delete", "revisions.serving.knative.dev", "web-00001")
	set := n.run(t, "get", "replicasets", "-l", "serving.knative.dev/revision=web-00001", "-o", "jsonpath={.items[0].metadata.name}")
	n.checkDenied(t, budgetDenial, "delete", "replicaset", set)
	n.checkDenied(t, "would leave its controller, so PodUnavailableBudget web may no longer protect its pods", "patch", "replicaset", set, "--type=json", "-p", `[{"op":"remove","path":"/metadata/ownerReferences"}]`)

	// The traffic moves.
	n.run(t, "rollout", "status", "deployment", "web-00002-deployment", "--timeout=60s")
	n.routeTo(t, "web-00002")
	n.checkDenied(t, budgetDenial, "delete", "pod", n.revisionPods(t, "web-00002")[0])
	n.run(t, append([]string{"delete", "pod"}, n.revisionPods(t, "web-00001")...)...)
	awaitNumbers(t, c, n.name, 2, 2, 2, 0)
	n.run(t, "delete", "revisions.serving.knative.dev", "web-00001", "--timeout=60s")
	n.awaitRevisionPods(t, "web-00001", 0)
	awaitNumbers(t, c, n.name, 2, 2, 2, 0)

	// The autoscaler scales down, to zero, and up.
	n.autoscale(t, "web-00002", 1)
	n.awaitRevisionPods(t, "web-00002", 1)
	awaitNumbers(t, c, n.name, 1, 1, 1, 0)
	n.checkDenied(t, budgetDenial, "delete", "pod", n.revisionPods(t, "web-00002")[0])
	n.autoscale(t, "web-00002", 0)
	n.awaitRevisionPods(t, "web-00002", 0)
	awaitNumbers(t, c, n.name, 0, 0, 0, 0)
	n.autoscale(t, "web-00002", 3)
	awaitNumbers(t, c, n.name, 3, 2, 3, 1)

	// A broken pod uses up what is allowed. Its eviction is free, and its successor allows another.
	pods := n.revisionPods(t, "web-00002")
	n.setReady(t, pods[0], false)
	awaitNumbers(t, c, n.name, 3, 2, 2, 0)
	if err := n.evict(t, c, pods[1]); !apierrs.IsTooManyRequests(err) || !strings.Contains(err.Error(), "EVICT of pod "+pods[1]+" is denied by PodUnavailableBudget web") {
		t.Errorf("the eviction of an available pod: %v", err)
	}
	if err := n.evict(t, c, pods[0]); err != nil {
		t.Errorf("the eviction of a broken pod: %v", err)
	}
	awaitNumbers(t, c, n.name, 3, 2, 3, 1)
	if err := n.evict(t, c, pods[1]); err != nil {
		t.Errorf("the eviction after the replacement: %v", err)
	}

	n.run(t, "delete", "services.serving.knative.dev", "web", "--timeout=60s")
	n.awaitRevisionPods(t, "web-00002", 0)

	checkSelectorOfAKnativeService(t)
	checkGeneratedBudgetsOfAKnativeService(t)
}

// checkSelectorOfAKnativeService checks that a budget with a selector does not block the deletion of
// a Knative Service, with the right that the page names.
func checkSelectorOfAKnativeService(t *testing.T) {
	t.Helper()
	n := newNamespace(t)
	n.cleanup(t, "delete", "clusterrole", n.name, "--ignore-not-found")
	n.apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s, labels: {breakwater.dev/owners: "true"}},
 rules: [{apiGroups: [serving.knative.dev], resources: [revisions, configurations], verbs: [get]}]}`, n.name))
	n.newRevision(t, n.newKnativeService(t), "web-00001", 2)
	n.apply(t, `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {selector: {matchLabels: {serving.knative.dev/service: web}}, maxUnavailable: 0}}`)
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, budgetDenial, "delete", "pod", n.revisionPods(t, "web-00001")[0])
	n.run(t, "delete", "services.serving.knative.dev", "web", "--timeout=60s")
	n.awaitRevisionPods(t, "web-00001", 0)
}

func TestAnotherKindOfServingAsTheTargetIsDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	r := n.Try(t, strings.Replace(knativeBudget("minAvailable: 1"), "kind: Service", "kind: Revision", 1), "apply", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, "spec.targetRef.kind") || !strings.Contains(r.Stderr, "write kind: Service") {
		t.Errorf("%s", r)
	}
}
