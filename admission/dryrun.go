package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
)

// DryRun reports whether a request is a dry run. An eviction may say so in its body
// only: kubectl drain does.
func DryRun(req *admissionv1.AdmissionRequest) (bool, error) {
	dryRun := ptr.Deref(req.DryRun, false)
	if req.SubResource != "eviction" {
		return dryRun, nil
	}
	var eviction policyv1.Eviction
	if err := json.Unmarshal(req.Object.Raw, &eviction); err != nil {
		return dryRun, fmt.Errorf("decode Eviction: %w", err)
	}
	return dryRun || eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0, nil
}
