package selfcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAGuardIsReadAgainOnlyIfItChanged(t *testing.T) {
	w := newFixture(t)
	reads := func() (policies int) {
		for _, a := range w.kube.Actions() {
			if a.Matches("get", "validatingadmissionpolicies") {
				policies++
			}
		}
		w.kube.ClearActions()
		return policies
	}
	update := func(resourceVersion string, p admissionregistrationv1.FailurePolicyType) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "replicas", ResourceVersion: resourceVersion},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicySpec{FailurePolicy: new(p)},
		}
		if _, err := w.admission.ValidatingAdmissionPolicies().Update(t.Context(), policy, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int, findings ...string) {
		t.Helper()
		w.check(t)
		if got := reads(); got != want {
			t.Errorf("%d reads of the policy, want %d", got, want)
		}
		if diff := cmp.Diff(findings, w.open()); diff != "" {
			t.Error(diff)
		}
	}
	update("1", admissionregistrationv1.Fail)
	check(1)
	check(0)
	w.now.SetTime(w.now.Now().Add(readAgainAfter))
	check(1)
	check(0)
	update("2", admissionregistrationv1.Ignore)
	check(1)
	check(0, ReasonPolicyNotDenying)
	if err := w.admission.ValidatingAdmissionPolicies().Delete(t.Context(), "replicas", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	check(1, ReasonPolicyNotDenying)
	check(1, ReasonGuardMissing)
}
