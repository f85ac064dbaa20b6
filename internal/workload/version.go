package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Version returns the version of a pod template: 32 hexadecimal characters of
// the SHA-256 of its JSON. The JSON is written from Go types, so templates with the
// same meaning (see SameTemplate) have the same version, whoever wrote them.
//
// Releases, saved templates and running pods are found by their version. If a new
// release of Breakwater computed another version for a stored template, they would not
// be found. TestAnUpgradeKeepsVersions prevents this.
//
// For kinds other than Deployment the kind is part of the hash, so that two
// workloads with the same name and template have different versions and
// ChangeWorkloads.
func Version(kind Kind, template *corev1.PodTemplateSpec) (string, error) {
	raw, err := encode(template)
	if err != nil {
		return "", err
	}
	if kind.GroupKind() != Deployment.GroupKind() {
		raw = append([]byte(kind.GroupKind().String()+"\n"), raw...)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

func encode(template *corev1.PodTemplateSpec) ([]byte, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	return raw, nil
}
