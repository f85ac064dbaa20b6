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

// A budget whose status is not computed denies all requests with 429 and a
// delay.
func TestABudgetThatIsNotComputedYetDeniesAll(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	n.apply(t, deploymentManifest(3, "{}"))
	n.awaitRollout(t)
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
		if status, ok := err.(apierrs.APIStatus); !ok || status.Status().Code != http.StatusTooManyRequests || !strings.Contains(err.Error(), "is not synced with its generation 1 yet") {
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
