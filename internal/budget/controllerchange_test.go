package budget

import "testing"

func TestWhatTakesAPodOutOfATargetsHands(t *testing.T) {
	for name, tc := range map[string]struct {
		tie  ControllerChange
		want bool
	}{
		"a label that the controller does not ask for":      {ControllerChange{SameController: true, StillCovered: true, SelectedBefore: true, SelectedAfter: true}, false},
		"a label by which the controller selects":           {ControllerChange{SameController: true, StillCovered: true, SelectedBefore: true}, true},
		"a label of a pod that was not selected any more":   {ControllerChange{SameController: true, StillCovered: true}, false},
		"a label by which it is selected again":             {ControllerChange{SameController: true, StillCovered: true, SelectedAfter: true}, false},
		"a label, the selector cannot be read":              {ControllerChange{SameController: true, StillCovered: true, SelectorUnknown: true}, true},
		"a label, the controller ends":                      {ControllerChange{SameController: true, StillCovered: true, ControllerDeleted: true, SelectedBefore: true}, false},
		"the owner is taken away":                           {ControllerChange{SelectedBefore: true, SelectedAfter: true}, true},
		"the owner and the label are taken away":            {ControllerChange{SelectedBefore: true}, true},
		"the controller lets go of what it does not select": {ControllerChange{}, false},
		"the controller is deleted and leaves its pods":     {ControllerChange{ControllerDeleted: true, SelectedBefore: true, SelectedAfter: true}, false},
		"the owner is taken away, nobody knows of what":     {ControllerChange{SelectorUnknown: true}, true},
		"another controller of the same target":             {ControllerChange{StillCovered: true, SelectedBefore: true}, false},
	} {
		if got := tc.tie.LeavesTarget(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
