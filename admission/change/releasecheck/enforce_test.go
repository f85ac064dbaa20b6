package releasecheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestEnforce(t *testing.T) {
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNoVerdict
	for name, tc := range map[string]struct {
		outcome v1alpha1.Outcome
		policy  v1alpha1.NoVerdictPolicy
		shadow  bool
		want    Enforcement
	}{
		"pass":                       {pass, "Pass", false, Enforcement{true, "ReleaseCheckPassed", false, false}},
		"pass, policy Fail":          {pass, "Fail", false, Enforcement{true, "ReleaseCheckPassed", false, false}},
		"fail":                       {fail, "Pass", false, Enforcement{false, "ReleaseCheckFailed", true, false}},
		"fail in shadow mode":        {fail, "Fail", true, Enforcement{true, "ReleaseCheckFailed", true, true}},
		"no verdict":                 {nothing, "Pass", false, Enforcement{true, "ReleaseCheckNoVerdict", true, false}},
		"no verdict, policy Fail":    {nothing, "Fail", false, Enforcement{false, "ReleaseCheckNoVerdict", true, false}},
		"no verdict, in shadow mode": {nothing, "Pass", true, Enforcement{true, "ReleaseCheckNoVerdict", true, false}},
		"no verdict, policy Fail, in shadow mode": {nothing, "Fail", true, Enforcement{true, "ReleaseCheckNoVerdict", true, true}},
	} {
		if diff := cmp.Diff(tc.want, Enforce(tc.outcome, tc.policy, tc.shadow)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
