package budget

import "testing"

func TestWhatTakesAPodOutOfATargetsHands(t *testing.T) {
	for name, tc := range map[string]struct {
		tie  Tie
		want bool
	}{
		"a label that the controller does not ask for":      {Tie{Kept: true, Covered: true, Before: true, After: true}, false},
		"a label by which the controller selects":           {Tie{Kept: true, Covered: true, Before: true}, true},
		"a label of a pod that was not selected any more":   {Tie{Kept: true, Covered: true}, false},
		"a label by which it is selected again":             {Tie{Kept: true, Covered: true, After: true}, false},
		"a label, the selector cannot be read":              {Tie{Kept: true, Covered: true, Unknown: true}, true},
		"a label, the controller ends":                      {Tie{Kept: true, Covered: true, Gone: true, Before: true}, false},
		"the owner is taken away":                           {Tie{Before: true, After: true}, true},
		"the owner and the label are taken away":            {Tie{Before: true}, true},
		"the controller lets go of what it does not select": {Tie{}, false},
		"the controller is deleted and leaves its pods":     {Tie{Gone: true, Before: true, After: true}, false},
		"the owner is taken away, nobody knows of what":     {Tie{Unknown: true}, true},
		"another controller of the same target":             {Tie{Covered: true, Before: true}, false},
	} {
		if got := tc.tie.Breaks(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
