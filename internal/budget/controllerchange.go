package budget

// Tie is how a pod hangs on the controller by which a budget's target covers it,
// before and after an update.
type ControllerChange struct {
	// Kept: the controller is the same after the update.
	SameController bool
	// Covered: the owners that the pod has after the update are the target's too.
	StillCovered bool
	// Gone: the controller is being deleted, or is not there any more.
	ControllerDeleted bool
	// Unknown: which pods the controller selects cannot be read.
	SelectorUnknown bool
	// Before and After: the controller selects the pod, by its labels.
	SelectedBefore, SelectedAfter bool
}

// Breaks says whether the update takes the pod out of the target's hands. A
// controller lets go of a pod that it does not select any more, and makes another:
// so it is the change of labels that breaks the tie, and what the controller then
// does has been judged. So has the deletion of a controller that leaves its pods.
func (t ControllerChange) LeavesTarget() bool {
	switch {
	case t.ControllerDeleted, !t.SameController && t.StillCovered:
		return false
	case t.SelectorUnknown:
		return true
	case t.SameController:
		return t.SelectedBefore && !t.SelectedAfter
	default:
		return t.SelectedBefore
	}
}
