package workloadkinds

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAnInvalidConfigMapIsDeniedWithEntryFieldAndFix(t *testing.T) {
	ask := func(data, name string) *admissionv1.AdmissionResponse {
		cm := configMap(data)
		cm.Name = name
		raw, err := json.Marshal(cm)
		if err != nil {
			t.Fatal(err)
		}
		return Validator{}.Admit(t.Context(), &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: raw}}).Response
	}
	if r := ask(cloneSet+rollout, "config-workloads"); !r.Allowed {
		t.Errorf("denied: %v", r.Result)
	}
	if r := ask(mistake, "another"); !r.Allowed {
		t.Errorf("another ConfigMap is denied: %v", r.Result)
	}
	r := ask(cloneSet+mistake, "config-workloads")
	if r.Allowed || !strings.HasPrefix(r.Result.Message, "data.kinds[1].revisions: ") || !strings.Contains(r.Result.Message, "write ReplicaSet or") {
		t.Errorf("said %v", r.Result)
	}
	if r.Result.Code != http.StatusForbidden || r.Result.Reason != metav1.StatusReasonForbidden {
		t.Errorf("denied with %d %s, want 403 Forbidden", r.Result.Code, r.Result.Reason)
	}
}
