package lifecycle

import "testing"

func TestABrakeHoldsMoreThanTenRevocationsAboveAFifth(t *testing.T) {
	for name, tc := range map[string]struct {
		checked, orphaned, confirmed int
		want                         Brake
	}{
		"nothing":                            {0, 0, 0, Brake{}},
		"ten of ten":                         {10, 10, 0, Brake{}},
		"eleven of eleven":                   {11, 11, 0, Brake{Held: true}},
		"a fifth":                            {1000, 200, 0, Brake{}},
		"more than a fifth":                  {1000, 201, 0, Brake{Held: true}},
		"all":                                {1000, 1000, 0, Brake{Held: true}},
		"as many as confirmed":               {1000, 201, 201, Brake{Confirmed: 201}},
		"more than confirmed":                {1000, 202, 201, Brake{Held: true}},
		"a confirmation that is not needed":  {1000, 200, 201, Brake{}},
		"a confirmation for the first pages": {1000, 500, 300, Brake{Held: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecideBrake(tc.checked, tc.orphaned, tc.confirmed); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
