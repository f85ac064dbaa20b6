package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of a workload about rollbacks.
const (
	// RollbackAnnotation records, as JSON of type Rollback, the last rollback by
	// Breakwater. The rollback reconciler writes it together with the template.
	RollbackAnnotation = "altershield.defense.antgroup.com/rollback"
	// RollbackRequestAnnotation requests a rollback, as JSON of type RollbackRequest.
	// Service openapi writes it, or a person. The rollback reconciler removes it when it rolls
	// back, or if it is outdated.
	RollbackRequestAnnotation = "altershield.defense.antgroup.com/rollback-request"
)

// RollbackKind is the cause of a rollback.
type RollbackKind string

// The kinds of rollback.
const (
	// RollbackSelfHealing: pods of the release did not run, and none or too few recovered.
	RollbackSelfHealing RollbackKind = "self-healing"
	// RollbackVerdict: the release failed with ReasonCheckFailed or ReasonOrderCheckFailed, and
	// automatic-rollback is enabled.
	RollbackVerdict RollbackKind = "verdict"
	// RollbackRequested: a person requested it.
	RollbackRequested RollbackKind = "requested"
)

// Reason returns the reason of the kind in Events and metrics.
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

// Rollback is one rollback: the value of RollbackAnnotation, and status.rollback of the
// ChangeWorkload that was rolled back.
type Rollback struct {
	Kind RollbackKind `json:"kind"`
	// FromVersion and FromAttempt identify the release that was rolled back.
	FromVersion string `json:"fromVersion"`
	FromAttempt int64  `json:"fromAttempt"`
	// ToVersion is the version that the workload was rolled back to.
	ToVersion string `json:"toVersion"`
	// Attempt is the attempt of the rollback, which is a release of its own and is
	// judged.
	Attempt int64 `json:"attempt"`
	// Times is the number of consecutive automatic rollbacks of FromVersion, including
	// this one; 0 if a person requested the rollback.
	// +optional
	Times int32 `json:"times,omitempty"`
	// User requested the rollback; empty for an automatic rollback.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user,omitempty"`
	// Message explains the cause.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Time is the time when the template was written.
	Time metav1.Time `json:"time"`
}

// From returns the release that was rolled back.
func (r *Rollback) From() Release { return Release{Version: r.FromVersion, Attempt: r.FromAttempt} }

// RollbackRequest is the value of RollbackRequestAnnotation.
// +k8s:deepcopy-gen=false
type RollbackRequest struct {
	// User is the user name of the person: service openapi writes the authenticated one, and a
	// policy lets any other writer name only itself.
	User string `json:"user"`
	// Time is the time of the request.
	Time metav1.Time `json:"time"`
	// Attempt is the attempt to roll back. If it is not the current attempt, the
	// request is outdated and dropped.
	Attempt int64 `json:"attempt"`
	// Version is the target; empty means the newest version that succeeded.
	Version string `json:"version,omitempty"`
}

// RollbackOf reads RollbackAnnotation; nil if it is absent or malformed.
func RollbackOf(annotations map[string]string) *Rollback {
	return annotationOf[Rollback](annotations, RollbackAnnotation)
}

// RollbackRequestOf reads RollbackRequestAnnotation; nil if it is absent or malformed.
func RollbackRequestOf(annotations map[string]string) *RollbackRequest {
	return annotationOf[RollbackRequest](annotations, RollbackRequestAnnotation)
}

// IsRollback reports whether the current release of a workload is a rollback, made by
// Breakwater, or by a person while the workload was suspended. Annotations that
// `kubectl rollout undo` copied from an old ReplicaSet have another attempt.
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
