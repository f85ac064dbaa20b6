package cli_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFlowControlsThatMayNotBeListedAreNotedInTheAnswer(t *testing.T) {
	server := discovery.
		with("/apis/policy.kruise.io/v1alpha1/namespaces/shop/podunavailablebudgets", `{"kind":"PodUnavailableBudgetList","apiVersion":"policy.kruise.io/v1alpha1","items":[]}`).
		with(flowControlPath, failure(metav1.StatusReasonForbidden, http.StatusForbidden))
	_, output, code := server.run(t, "budgets", "-o", "json")
	if code != 0 || !strings.Contains(output, `"flowControls": []`) || !strings.Contains(output, `"note": "Flow controls are not shown`) {
		t.Errorf("exit code %d, output %s", code, output)
	}
}
