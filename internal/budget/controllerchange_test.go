package budget

import "testing"

func TestWhichUpdatesTakeAPodOutOfItsTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		tie  ControllerChange
		want bool
	}{
		"a label that is not in the selector":            {ControllerChange{SameController: true, StillCovered: true, SelectedBefore: true, SelectedAfter: true}, false},
		"a label by which the controller selects":        {ControllerChange{SameController: true, StillCovered: true, SelectedBefore: true}, true},
		"a label of a pod that was not selected":         {ControllerChange{SameController: true, StillCovered: true}, false},
		"a label by which the pod is selected again":     {ControllerChange{SameController: true, StillCovered: true, SelectedAfter: true}, false},
		"a label, with an unknown selector":              {ControllerChange{SameController: true, StillCovered: true, SelectorUnknown: true}, true},
		"a label, the controller is deleted":             {ControllerChange{SameController: true, StillCovered: true, ControllerTerminatingOrGone: true, SelectedBefore: true}, false},
		"the owner is removed":                           {ControllerChange{SelectedBefore: true, SelectedAfter: true}, true},
		"the owner and the label are removed":            {ControllerChange{SelectedBefore: true}, true},
		"the controller orphans an unselected pod":       {ControllerChange{}, false},
		"the controller is deleted and orphans its pods": {ControllerChange{ControllerTerminatingOrGone: true, SelectedBefore: true, SelectedAfter: true}, false},
		"the owner is removed, with an unknown selector": {ControllerChange{SelectorUnknown: true}, true},
		"another controller of the same target":          {ControllerChange{StillCovered: true, SelectedBefore: true}, false},
	} {
		if got := tc.tie.LeavesTarget(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
