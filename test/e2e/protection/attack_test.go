//go:build controlplane

package protection

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	admission "github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// stranger is a pod of the cluster that can connect to the webhook: it has no CA.
func stranger() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a stranger has no CA
}

// sendWithoutSecret sends a review as the API server would, but without the secret of the path, and
// requires that the webhook rejects it.
func sendWithoutSecret(t *testing.T, webhook string, review *admissionv1.AdmissionRequest) {
	t.Helper()
	forwarded := http.Header{}
	affinity.MarkForwarded(forwarded)
	for _, path := range []string{webhookpath.Prefix + webhook, webhookpath.Prefix + "secret/" + webhook} {
		for _, header := range []http.Header{nil, forwarded} {
			_, err := webhookpeers.SendReview(t.Context(), stranger(), controlplane.WebhookURL(admission.ServiceName)+path, header, review)
			if err == nil || !strings.Contains(err.Error(), "403") {
				t.Errorf("%s, header %v: got error %v, want 403", path, header, err)
			}
		}
	}
}

// sendWithSecret sends a review with the secret of the path. It shows that a review has an effect
// when only the secret is known.
func (n *namespace) sendWithSecret(t *testing.T, configuration, webhook string, review *admissionv1.AdmissionRequest) {
	t.Helper()
	path := n.run(t, "get", "validatingwebhookconfiguration", configuration, "-o", `jsonpath={.webhooks[?(@.name=="`+webhook+`")].clientConfig.service.path}`)
	answer, err := webhookpeers.SendReview(t.Context(), stranger(), controlplane.WebhookURL(admission.ServiceName)+path, nil, review)
	if err != nil || !answer.Allowed {
		t.Fatalf("%s: %v, %v", path, answer, err)
	}
}

// A pod of the cluster that can connect to the webhook sends the review of an eviction,
// as the API server would. The budget, which allows one eviction, must not be charged.
func TestAStrangersReviewChargesNothing(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetWithTarget("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	pod := n.podNames(t)[0]
	review := &admissionv1.AdmissionRequest{
		UID: "stranger", Operation: admissionv1.Create, Namespace: n.name, Name: pod, SubResource: "eviction",
		Kind:     metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object: runtime.RawExtension{Object: &policyv1.Eviction{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: pod},
		}},
	}
	sendWithoutSecret(t, budget.PodWebhook, review)
	awaitAllowed(t, c, n.name, 1) // nothing is charged
	if got := corev1.PodPhase(n.run(t, "get", "pod", pod, "-o", "jsonpath={.status.phase}")); got != corev1.PodRunning {
		t.Errorf("the pod is %s", got)
	}
	n.sendWithSecret(t, admission.Configuration, budget.PodWebhook, review)
	awaitBudget(t, c, n.name, shortTimeout, func(b *v1alpha1.PodUnavailableBudget) error {
		if len(b.Status.DeletedPods) != 1 {
			return fmt.Errorf("charged %v", b.Status.DeletedPods)
		}
		return nil
	})
}

// A stranger invents deletions of pods, each with a new UID and in the name of another user. They
// must not be counted: they would open the breaker for everybody, and it would name that user.
func TestAStrangersDeletionsOpenNoBreaker(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	c := newFlowControl(t, n, "")
	c.setLimit(t, 3)
	deletion := func() *admissionv1.AdmissionRequest {
		id := uuid.NewUUID()
		raw, err := json.Marshal(&corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "invented", UID: id},
			Spec:       corev1.PodSpec{NodeName: "invented"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return &admissionv1.AdmissionRequest{
			UID: "stranger-" + id, Operation: admissionv1.Delete, Namespace: n.name, Name: "invented",
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			UserInfo:  authenticationv1.UserInfo{Username: "ann"},
			OldObject: runtime.RawExtension{Raw: raw},
		}
	}
	for range 3 {
		sendWithoutSecret(t, "vdeletionflow.kb.io", deletion())
	}
	if got := c.status(t, "buckets"); got != "" {
		t.Errorf("counted: %s", got)
	}
	n.run(t, "delete", "pod", "probe", "--dry-run=server")
	for range 3 {
		n.sendWithSecret(t, deletionflow.Configuration, "vdeletionflow.kb.io", deletion())
	}
	n.checkDenied(t, "3 deletions were counted in 10m (limit 3)", "delete", "pod", "probe")
	c.awaitOpen(t, "True")
	n.await(t, "the breaker names the user", func() error {
		if got := c.status(t, `conditions[?(@.type=="Open")].message`); !strings.Contains(got, "ann") {
			return errors.New(got)
		}
		return nil
	})
}

// A stranger invents a budget, so that the webhook would label a namespace, and all requests about
// its pods would reach the webhook.
func TestAStrangersBudgetLabelsNoNamespace(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	raw := fmt.Sprintf(`{"apiVersion":"policy.kruise.io/v1alpha1","kind":"PodUnavailableBudget","metadata":{"namespace":%q,"name":"invented"},
 "spec":{"maxUnavailable":1,"selector":{"matchLabels":{"app":"web"}}}}`, n.name)
	review := &admissionv1.AdmissionRequest{
		UID: "stranger", Operation: admissionv1.Create, Namespace: n.name, Name: "invented",
		Kind:     metav1.GroupVersionKind{Group: v1alpha1.SchemeGroupVersion.Group, Version: "v1alpha1", Kind: "PodUnavailableBudget"},
		Resource: metav1.GroupVersionResource{Group: v1alpha1.SchemeGroupVersion.Group, Version: "v1alpha1", Resource: "podunavailablebudgets"},
		Object:   runtime.RawExtension{Raw: []byte(raw)},
	}
	label := func() string {
		return n.run(t, "get", "namespace", n.name, "-o", `jsonpath={.metadata.labels.policy\.breakwater\.dev/guarded}`)
	}
	sendWithoutSecret(t, budget.ObjectWebhook, review)
	if got := label(); got != "" {
		t.Errorf("the namespace has label %q", got)
	}
	n.sendWithSecret(t, admission.Configuration, budget.ObjectWebhook, review)
	if got := label(); got != v1alpha1.HasBudgetValue {
		t.Errorf("with the secret the namespace has label %q: the review has no effect to prevent", got)
	}
}
