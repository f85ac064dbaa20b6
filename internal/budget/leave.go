package budget

// Tie is how a pod hangs on the controller by which a budget's target covers it,
// before and after an update.
type Tie struct {
	// Kept: the controller is the same after the update.
	Kept bool
	// Covered: the owners that the pod has after the update are the target's too.
	Covered bool
	// Gone: the controller is being deleted, or is not there any more.
	Gone bool
	// Unknown: which pods the controller selects cannot be read.
	Unknown bool
	// Before and After: the controller selects the pod, by its labels.
	Before, After bool
}

// Breaks says whether the update takes the pod out of the target's hands. A
// controller lets go of a pod that it does not select any more, and makes another:
// so it is the change of labels that breaks the tie, and what the controller then
// does has been judged. So has the deletion of a controller that leaves its pods.
func (t Tie) Breaks() bool {
	switch {
	case t.Gone, !t.Kept && t.Covered:
		return false
	case t.Unknown:
		return true
	case t.Kept:
		return t.Before && !t.After
	default:
		return t.Before
	}
}
