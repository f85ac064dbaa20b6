package lifecycle

import "testing"

func TestAPageOfMoreThanTenRevocationsAboveAFifthNeedsAConfirmation(t *testing.T) {
	for name, tc := range map[string]struct {
		checked, unlisted, confirmed int
		want                         PageDecision
	}{
		"nothing":                            {0, 0, 0, PageDecision{}},
		"ten of ten":                         {10, 10, 0, PageDecision{}},
		"eleven of eleven":                   {11, 11, 0, PageDecision{Unconfirmed: true}},
		"a fifth":                            {1000, 200, 0, PageDecision{}},
		"more than a fifth":                  {1000, 201, 0, PageDecision{Unconfirmed: true}},
		"all":                                {1000, 1000, 0, PageDecision{Unconfirmed: true}},
		"as many as confirmed":               {1000, 201, 201, PageDecision{UsesConfirmation: true}},
		"more than confirmed":                {1000, 202, 201, PageDecision{Unconfirmed: true}},
		"a confirmation that is not needed":  {1000, 200, 201, PageDecision{}},
		"a confirmation for the first pages": {1000, 500, 300, PageDecision{Unconfirmed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DecidePage(tc.checked, tc.unlisted, tc.confirmed); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
