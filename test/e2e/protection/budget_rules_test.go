//go:build e2e

package protection

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targetManifest is a workload web of a kind with a pod spec.
func targetManifest(apiVersion, kind, spec, pod string) string {
	selector := "selector: {matchLabels: {app: web}}, "
	if kind == "Job" {
		selector = ""
	}
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: web}, spec: {%s%s, template: {metadata: {labels: {app: web}}, spec: %s}}}`,
		apiVersion, kind, selector, spec, pod)
}

// A pod belongs to the target by its chain of owners, for each kind of target.
func TestATargetMayBeOfAnyKindThatOwnsPods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ apiVersion, kind, spec, pod string }{
		{"apps/v1", "StatefulSet", "replicas: 2, serviceName: web", simulatedPodSpec},
		{"apps/v1", "ReplicaSet", "replicas: 2", simulatedPodSpec},
		{"apps/v1", "DaemonSet", "minReadySeconds: 0", simulatedPodSpec},
		{"batch/v1", "Job", "parallelism: 2, completions: 2", endlessPodSpec}, // simulated pods of a Job would complete
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.apply(t, targetManifest(tc.apiVersion, tc.kind, tc.spec, tc.pod))
			n.await(t, "a pod is Ready", func() error {
				if got := n.run(t, "get", "pods", "-l", "app=web", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`); !strings.Contains(got, "True") || strings.Contains(got, "False") {
					return fmt.Errorf("got %q", got)
				}
				return nil
			})
			n.apply(t, fmt.Sprintf(`{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: %s, kind: %s, name: web}, maxUnavailable: 0}}`, tc.apiVersion, tc.kind))
			n.run(t, "wait", "--for=condition=Guarding", "pub/web", "--timeout=60s")
			n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
			n.run(t, "delete", strings.ToLower(tc.kind), "web", "--timeout=60s") // deleting the topmost owner is not a disruption
		})
	}
}

// endlessPodSpec is the spec of a pod for the real node that does not complete.
const endlessPodSpec = `{terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity]}]}`

func TestARestartByOpenKruiseIsJudged(t *testing.T) {
	n := newNamespace(t)
	n.installCRD(t, "ContainerRecreateRequest", "containerrecreaterequests", "v1alpha1")
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	request := fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {name: again}, spec: {podName: %s}}`, n.podNames(t)[0])
	n.await(t, "the webhook is called for the new kind", func() error {
		if r := n.tryWithInput(t, request, "create", "--dry-run=server", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	if r := n.tryWithInput(t, request, "create", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) {
		t.Errorf("%s", r)
	}
}

// A budget whose status is not computed denies all requests with 429 and a
// delay.
func TestABudgetThatIsNotComputedYetDeniesAll(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	n.apply(t, deploymentManifest(3, "{}"))
	n.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
	controller := append(append([]string{}, system...), "scale", "deployment", "protection-controller")
	n.cleanup(t, append(append([]string{}, system...), "rollout", "status", "deployment", "protection-controller", "--timeout=60s")...)
	n.cleanup(t, append(controller, "--replicas=2")...)
	n.run(t, append(controller, "--replicas=0")...)
	n.run(t, append(system, "wait", "--for=delete", "pods", "-l", "app.kubernetes.io/component=protection-controller", "--timeout=60s")...)
	n.apply(t, budgetManifest("maxUnavailable: 3"))
	n.await(t, "the webhook has the budget in its cache", func() error {
		// kubectl would repeat a request that is answered 429.
		err := c.kube.CoreV1().RESTClient().Delete().Namespace(n.name).Resource("pods").Name(n.podNames(t)[0]).
			Body(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}).MaxRetries(0).Do(t.Context()).Error()
		if status, ok := err.(apierrs.APIStatus); !ok || status.Status().Code != http.StatusTooManyRequests || !strings.Contains(err.Error(), "is not computed yet for its generation 1") {
			return fmt.Errorf("got %w, want 429", err)
		}
		if seconds, ok := apierrs.SuggestsClientDelay(err); !ok || seconds < 1 {
			return fmt.Errorf("the response has no Retry-After: %w", err)
		}
		return nil
	})
	n.run(t, append(controller, "--replicas=2")...)
	n.await(t, "the budget is computed", func() error {
		if r := n.try(t, "delete", "pod", n.podNames(t)[0], "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// An eviction that a PodDisruptionBudget denies is not charged.
func TestAnEvictionDeniedByAPodDisruptionBudgetCostsNothing(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 1"))
	n.apply(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}}`)
	n.await(t, "the PodDisruptionBudget is computed", func() error {
		if got := n.run(t, "get", "pdb", "web", "-o", "jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}"); got != "3 0" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	for _, name := range n.podNames(t) {
		r := n.tryWithInput(t, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, name),
			"create", "--raw", n.path("pods")+"/"+name+"/eviction", "-f", "-")
		if r.Code == 0 || !strings.Contains(r.Stderr, "would violate") {
			t.Errorf("%s", r)
		}
	}
	b := awaitAllowed(t, c, n.name, 1) // fails when a charge remains
	if b.Status.CurrentAvailable != 3 {
		t.Errorf("%d pods are available", b.Status.CurrentAvailable)
	}
}
