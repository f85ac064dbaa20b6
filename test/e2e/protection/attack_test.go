//go:build controlplane

package protection

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	admission "github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// A pod of the cluster that can connect to the webhook sends the review of an eviction,
// as the API server would. The budget, which allows one eviction, must not be charged.
func TestAStrangersReviewChargesNothing(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetWithTarget("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	pod := n.podNames(t)[0]
	eviction := &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: pod},
	}
	review := &admissionv1.AdmissionRequest{
		UID: "stranger", Operation: admissionv1.Create, Namespace: n.name, Name: pod, SubResource: "eviction",
		Kind:     metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object:   runtime.RawExtension{Object: eviction},
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a stranger has no CA
	for _, path := range []string{
		webhookpath.Prefix + budget.PodWebhook,
		webhookpath.Prefix + "secret/" + budget.PodWebhook,
	} {
		_, err := webhookpeers.SendReview(t.Context(), stranger, controlplane.WebhookURL(admission.ServiceName)+path, nil, review)
		if err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: got error %v, want 403", path, err)
		}
	}
	awaitAllowed(t, c, n.name, 1) // nothing is charged
	if got := corev1.PodPhase(n.run(t, "get", "pod", pod, "-o", "jsonpath={.status.phase}")); got != corev1.PodRunning {
		t.Errorf("the pod is %s", got)
	}
	n.run(t, "delete", "pod", pod)
}
