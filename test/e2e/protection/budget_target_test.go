//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"

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

// targetKind is a kind of workload that owns pods.
type targetKind struct{ apiVersion, kind, spec, pod string }

// checkTarget checks that a budget with the workload as its target covers its pods.
func (n *namespace) checkTarget(t *testing.T, tc targetKind) {
	t.Helper()
	n.apply(t, targetManifest(tc.apiVersion, tc.kind, tc.spec, tc.pod))
	n.await(t, "a pod is Ready", func() error {
		if got := n.list(t, "pod", metav1.ListOptions{LabelSelector: "app=web"}, `{.items[*].status.conditions[?(@.type=="Ready")].status}`); !strings.Contains(got, "True") || strings.Contains(got, "False") {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	n.apply(t, fmt.Sprintf(`{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: %s, kind: %s, name: web}, maxUnavailable: 0}}`, tc.apiVersion, tc.kind))
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
	n.run(t, "delete", strings.ToLower(tc.kind), "web", "--timeout=60s") // deleting the topmost owner is not a disruption
}
