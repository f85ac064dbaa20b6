package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// DryRun reports whether a request is a dry run. An eviction may say so in its body
// only: kubectl drain does.
func DryRun(req *admissionv1.AdmissionRequest) (bool, error) {
	dryRun := ptr.Deref(req.DryRun, false)
	if req.SubResource != "eviction" {
		return dryRun, nil
	}
	options, err := optionsOfEviction(req)
	return dryRun || options != nil && len(options.DryRun) > 0, err
}

// EvictsOther reports whether an eviction is of another pod than the one with this UID, which has its name
// and was read from the API server. The API server then answers Conflict and evicts none. A precondition on
// the resourceVersion is no proof: the API server replaces it for a pod that is not Ready.
func EvictsOther(req *admissionv1.AdmissionRequest, uid types.UID) (bool, error) {
	options, err := optionsOfEviction(req)
	if err != nil || options == nil || options.Preconditions == nil {
		return false, err
	}
	return ptr.Deref(options.Preconditions.UID, uid) != uid, nil
}

func optionsOfEviction(req *admissionv1.AdmissionRequest) (*metav1.DeleteOptions, error) {
	var eviction policyv1.Eviction
	if err := json.Unmarshal(req.Object.Raw, &eviction); err != nil {
		return nil, fmt.Errorf("decode Eviction: %w", err)
	}
	return eviction.DeleteOptions, nil
}
