package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Version returns the version of a pod template: 32 hexadecimal characters of
// the SHA-256 of its JSON. The API server has set all defaults when admission
// and reconcilers see a template, so equal intent is equal JSON.
//
// For kinds other than Deployment the kind is part of the hash, so that two
// workloads with the same name and template have different versions and
// ChangeWorkloads.
func Version(kind Kind, template *corev1.PodTemplateSpec) (string, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("hash the pod template: %w", err)
	}
	if kind.GroupKind() != Deployment.GroupKind() {
		raw = append([]byte(kind.GroupKind().String()+"\n"), raw...)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}
