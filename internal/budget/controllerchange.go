package budget

// ControllerChange describes how an update of a pod changes its relation to the
// controller through which the budget's target covers it.
type ControllerChange struct {
	// SameController reports whether the pod has the same reference to its controller afterwards.
	SameController bool
	// StillCovered reports whether the target owns the pod afterwards, and no controller above
	// the pod is missing.
	StillCovered bool
	// ControllerTerminatingOrGone reports whether the controller is terminating or not found.
	ControllerTerminatingOrGone bool
	// SelectorUnknown reports whether the controller's selector cannot be read.
	SelectorUnknown bool
	// SelectedBefore and SelectedAfter report whether the selector matches the pod.
	SelectedBefore, SelectedAfter bool
}

// LeavesTarget decides whether the update takes the pod out of the target. A controller
// orphans and replaces a pod that it does not select anymore. So the change of the labels
// takes the pod out; the removal of the ownerReference that follows does not. If a controller is
// deleted and orphans its pods, the removal of its ownerReference does not take them out, either.
func (c ControllerChange) LeavesTarget() bool {
	switch {
	case c.ControllerTerminatingOrGone, !c.SameController && c.StillCovered:
		return false
	case c.SelectorUnknown:
		return true
	case c.SameController:
		return c.SelectedBefore && !c.SelectedAfter
	default:
		return c.SelectedBefore
	}
}
