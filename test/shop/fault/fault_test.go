// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
)

func TestEveryKindHasEffectsOfItsOwnInEveryStrength(t *testing.T) {
	seen := map[Effects]string{{}: "no fault"}
	for _, k := range Kinds {
		for _, s := range Strengths {
			e, err := EffectsOf(k, s)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[e]; ok {
				t.Errorf("%s, %s has the effects of %s", k, s, other)
			}
			seen[e] = string(k) + ", " + string(s)
		}
	}
}

func TestTheWeakestFaultsAreTwoPercentOrThirtyPercentMore(t *testing.T) {
	for k, want := range map[Kind]Effects{
		None:         {},
		Errors:       {Errors: 0.02},
		WrongAnswers: {Wrong: 0.02},
		Latency:      {Slowdown: 1.3},
		CPU:          {CPU: 0.3},
	} {
		if got, err := EffectsOf(k, Weak); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", k, got, err)
		}
	}
}

func TestUnknownNamesAreRejectedWithTheKnownOnes(t *testing.T) {
	for tc, c := range map[string]struct {
		kind     Kind
		strength Strength
		want     string
	}{
		"kind":     {"error", Weak, "use one of errors, not-found"},
		"strength": {Errors, "mild", "use one of weak, medium, strong"},
	} {
		if _, err := EffectsOf(c.kind, c.strength); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q in it", tc, err, c.want)
		}
	}
}
