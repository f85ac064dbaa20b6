package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BypassKind is the reason why an update of a suspended workload was admitted.
type BypassKind string

// The kinds of bypass.
const (
	// BypassRepair is an update with IgnoredSuspendLabel.
	BypassRepair BypassKind = "repair"
	// BypassRollback is an update to a version that succeeded.
	BypassRollback BypassKind = "rollback"
)

// Reason returns the reason of the kind in Events.
func (k BypassKind) Reason() string {
	if k == BypassRollback {
		return ReasonRollbackAdmitted
	}
	return ReasonRepairAdmitted
}

// Bypass is the value of BypassAnnotation.
// +k8s:deepcopy-gen=false
type Bypass struct {
	Kind BypassKind `json:"kind"`
	// User is the authenticated user name of the update.
	User string `json:"user"`
	// Suspend is the value of SuspendLabel that was bypassed: a suspension allows one
	// repair.
	Suspend string `json:"suspend"`
	// Attempt is the attempt of the update.
	Attempt int64 `json:"attempt"`
	// Freeze is Hold.Freeze of the hold that the update ended. It is the value of Suspend if an automatic
	// rollback bypassed the suspension by a person of a workload that had not failed.
	Freeze string `json:"freeze,omitempty"`
	// Traffic is Hold.Traffic of that hold: the traffic of a Knative Service moves back when the
	// repair succeeds.
	Traffic *HeldTraffic `json:"traffic,omitempty"`
	// AnotherRepair: a person removed the annotation, which allows another repair. The webhook wrote it
	// again, because Freeze and Traffic are recorded nowhere else. It is removed with the suspension.
	AnotherRepair bool `json:"anotherRepair,omitempty"`
	// Ended: the suspension has ended. A person may freeze the workload again with the same value of SuspendLabel.
	Ended bool `json:"ended,omitempty"`
	// Time is the time of admission.
	Time metav1.Time `json:"time"`
}

// BypassOf reads BypassAnnotation; nil if it is absent or malformed.
func BypassOf(annotations map[string]string) *Bypass {
	return annotationOf[Bypass](annotations, BypassAnnotation)
}

// CurrentBypassOf returns the bypass of the current suspension; nil if there is none. The record of an
// earlier suspension stays on the workload, because IsRollback reads it.
func CurrentBypassOf(labels, annotations map[string]string) *Bypass {
	suspend, suspended := labels[SuspendLabel]
	if b := BypassOf(annotations); b != nil && !b.Ended && suspended && b.Suspend == suspend {
		return b
	}
	return nil
}

// UsesRepair reports whether the bypass is the one repair that its suspension allows; false for nil.
func (b *Bypass) UsesRepair() bool { return b != nil && b.Kind == BypassRepair && !b.AnotherRepair }
