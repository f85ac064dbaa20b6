//go:build e2e || controlplane

package protection

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// knativeBudget returns a budget whose target is the Knative Service web.
func knativeBudget(limits string) string {
	return `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: serving.knative.dev/v1, kind: Service, name: web}, ` + limits + `}}`
}

func (n *namespace) revisionPods(t *testing.T, revision string) []string {
	t.Helper()
	return livePods(t, n.kube, n.name, metav1.ListOptions{LabelSelector: "serving.knative.dev/revision=" + revision})
}

func (n *namespace) awaitRevisionPods(t *testing.T, revision string, count int) {
	t.Helper()
	n.await(t, fmt.Sprintf("%s has %d pods", revision, count), func() error {
		if got := n.revisionPods(t, revision); len(got) != count {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

// awaitNumbers waits until a budget without charges has these numbers.
func awaitNumbers(t *testing.T, c clients, namespace string, total, desired, current, allowed int32) {
	t.Helper()
	awaitBudget(t, c, namespace, shortTimeout, func(b *v1alpha1.PodUnavailableBudget) error {
		if s := b.Status; s.TotalReplicas != total || s.DesiredAvailable != desired || s.CurrentAvailable != current {
			return fmt.Errorf("total %d, desired %d, current %d: %v", s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.Conditions)
		}
		return allows(allowed)(b)
	})
}

func (n *namespace) evict(t *testing.T, c clients, pod string) error {
	t.Helper()
	return c.kube.CoreV1().Pods(n.name).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: n.name}})
}
