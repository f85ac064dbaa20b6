package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of a workload about going back.
const (
	// RollbackAnnotation records, as JSON of type Rollback, the last rollback
	// that Breakwater made. Written with the template by the Rollback reconciler.
	RollbackAnnotation = "altershield.defense.antgroup.com/rollback"
	// RollbackRequestAnnotation asks, as JSON of type RollbackRequest, to go
	// back. Written by the service openapi; taken away by the Rollback
	// reconciler, in the write that carries it out or because it is outdated.
	RollbackRequestAnnotation = "altershield.defense.antgroup.com/rollback-request"
)

// RollbackKind says why a workload went back.
type RollbackKind string

// The kinds of rollback.
const (
	// RollbackSelfHealing: the pods of the release did not come up.
	RollbackSelfHealing RollbackKind = "self-healing"
	// RollbackVerdict: the release failed its check (automatic-rollback is on).
	RollbackVerdict RollbackKind = "verdict"
	// RollbackRequested: a person asked.
	RollbackRequested RollbackKind = "requested"
)

// Reason returns the reason that tells of the kind in Events and metrics.
func (k RollbackKind) Reason() string {
	switch k {
	case RollbackSelfHealing:
		return ReasonSelfHealed
	case RollbackVerdict:
		return ReasonRolledBack
	default:
		return ReasonRollbackRequested
	}
}

// Rollback is one rollback: the value of RollbackAnnotation, and
// status.rollback of the ChangeWorkload that was left.
type Rollback struct {
	Kind RollbackKind `json:"kind"`
	// FromVersion and FromAttempt are the release that was left.
	FromVersion string `json:"fromVersion"`
	FromAttempt int64  `json:"fromAttempt"`
	// ToVersion is the version that the workload went back to.
	ToVersion string `json:"toVersion"`
	// Attempt is the attempt that the rollback became: a release of its own,
	// which is checked.
	Attempt int64 `json:"attempt"`
	// Times is how often in a row FromVersion was left by itself; 1 the first
	// time, 0 where a person asked.
	// +optional
	Times int32 `json:"times,omitempty"`
	// User is who asked; empty when nobody did.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user,omitempty"`
	// Message says why, to a person.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Time is when the template was written.
	Time metav1.Time `json:"time"`
}

// From returns the release that was left.
func (r *Rollback) From() Release { return Release{Version: r.FromVersion, Attempt: r.FromAttempt} }

// RollbackRequest is the value of RollbackRequestAnnotation.
// +k8s:deepcopy-gen=false
type RollbackRequest struct {
	// User is whom the API server knew by the token of the request.
	User string `json:"user"`
	// Time is when it was asked.
	Time metav1.Time `json:"time"`
	// Attempt is the attempt that is to be left. A request about another than
	// the current one is outdated and dropped.
	Attempt int64 `json:"attempt"`
	// Version is where to go back to; empty is the newest that succeeded.
	Version string `json:"version,omitempty"`
}

// RollbackOf reads RollbackAnnotation; nil when it is absent or malformed.
func RollbackOf(annotations map[string]string) *Rollback {
	return annotationOf[Rollback](annotations, RollbackAnnotation)
}

// RollbackRequestOf reads RollbackRequestAnnotation; nil when it is absent or
// malformed.
func RollbackRequestOf(annotations map[string]string) *RollbackRequest {
	return annotationOf[RollbackRequest](annotations, RollbackRequestAnnotation)
}

// IsRollback says whether the release that a workload is at is a way back: one
// that Breakwater made, or one that a person made while it was suspended. An
// annotation that an old ReplicaSet brought back names another attempt.
func IsRollback(annotations map[string]string) bool {
	release, ok := ReleaseOf(annotations)
	if !ok {
		return false
	}
	if r := RollbackOf(annotations); r != nil && r.Attempt == release.Attempt {
		return true
	}
	b := BypassOf(annotations)
	return b != nil && b.Kind == BypassRollback && b.Attempt == release.Attempt
}

// BypassOf reads BypassAnnotation; nil when it is absent or malformed.
func BypassOf(annotations map[string]string) *Bypass {
	return annotationOf[Bypass](annotations, BypassAnnotation)
}

// HoldOf reads HoldAnnotation; nil when it is absent or malformed.
func HoldOf(annotations map[string]string) *Hold {
	return annotationOf[Hold](annotations, HoldAnnotation)
}

func annotationOf[T any](annotations map[string]string, key string) *T {
	var v T
	raw := annotations[key]
	if raw == "" || json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return &v
}
