package v1alpha1

// Hold is the value of HoldAnnotation.
// +k8s:deepcopy-gen=false
type Hold struct {
	// Attempt is the held attempt.
	Attempt int64 `json:"attempt"`
	// Former is the previous value of the field that stops a rollout (spec.paused of a
	// Deployment, for instance); nil if the field was absent. If Former is the value that
	// stops the rollout, the hold has not changed the field: it had this value, or there was
	// no rollout to stop. Then the end of the hold does not change it either.
	Former any `json:"former,omitempty"`
	// Freeze is the previous value of SuspendLabel, which a user set and which is
	// restored after the hold ("true" if it was empty); empty if there was none.
	Freeze string `json:"freeze,omitempty"`
	// Unjudged: the rollout is held because pods or the order are unjudged. The hold
	// does not suspend the workload, so a newer template is admitted and ends it.
	Unjudged bool `json:"unjudged,omitempty"`
	// UntilJudged: only the traffic of a Knative Service is held, until the first batch passed. The
	// rollout continues, and the workload is not suspended.
	UntilJudged bool `json:"untilJudged,omitempty"`
	// Traffic is what the hold did with spec.traffic of a Knative Service; nil for other kinds.
	Traffic *HeldTraffic `json:"traffic,omitempty"`
}

// HeldTraffic is what a hold did with spec.traffic of a Knative Service.
// +k8s:deepcopy-gen=false
type HeldTraffic struct {
	// Failed are the Revisions that failed. They get no more traffic than they have.
	Failed []string `json:"failed,omitempty"`
	// To is the Revision that got their share, or that of the latest one; empty if none did.
	To string `json:"to,omitempty"`
	// Former is the previous value of spec.traffic; nil if it was not changed.
	Former []map[string]any `json:"former,omitempty"`
}

// HoldOf reads HoldAnnotation; nil if it is absent or malformed.
func HoldOf(annotations map[string]string) *Hold {
	return annotationOf[Hold](annotations, HoldAnnotation)
}

// Suspends reports whether the hold suspends the workload; false for nil.
func (h *Hold) Suspends() bool { return h != nil && !h.Unjudged && !h.UntilJudged }

// IsWithoutSuspension reports whether there is a hold and it does not suspend the workload, which may be
// suspended for another cause; false for nil.
func (h *Hold) IsWithoutSuspension() bool { return h != nil && !h.Suspends() }

// IsUntilJudged reports whether only the traffic of a Knative Service is held, until the first batch
// passed; false for nil.
func (h *Hold) IsUntilJudged() bool { return h != nil && h.UntilJudged }

// HeldTrafficOf returns what a hold did with the traffic of a Knative Service, or nil. During a
// repair it is in the bypass annotation.
func HeldTrafficOf(labels, annotations map[string]string) *HeldTraffic {
	if hold := HoldOf(annotations); hold != nil {
		return hold.Traffic
	}
	if bypass := CurrentBypassOf(labels, annotations); bypass != nil {
		return bypass.Traffic
	}
	return nil
}

// RestorableTrafficOf returns the held traffic that the end of the hold or of the suspension restores, or
// nil. The end of the hold of an unjudged repair restores nothing: the suspension keeps the traffic until a
// repair succeeds.
func RestorableTrafficOf(labels, annotations map[string]string) *HeldTraffic {
	bypass := CurrentBypassOf(labels, annotations)
	if HoldOf(annotations).IsWithoutSuspension() && bypass != nil && bypass.Traffic != nil {
		return nil
	}
	return HeldTrafficOf(labels, annotations)
}

// FreezeOf returns the value with which a person had suspended the workload before its check failed, empty
// if nobody had, and whether the suspension has a record of it. During a repair it is in the bypass annotation.
func FreezeOf(labels, annotations map[string]string) (value string, recorded bool) {
	if hold := HoldOf(annotations); hold.Suspends() {
		return hold.Freeze, true
	}
	if bypass := CurrentBypassOf(labels, annotations); bypass != nil {
		return bypass.Freeze, true
	}
	return "", false
}
