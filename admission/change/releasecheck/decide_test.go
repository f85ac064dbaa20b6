package releasecheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// known is an answer about attempt 3, given some time before noon.
func known(outcome v1alpha1.Outcome, age time.Duration) *v1alpha1.ReleaseCheckStatus {
	return &v1alpha1.ReleaseCheckStatus{Outcome: outcome, Attempt: 3, Time: metav1.NewMicroTime(noon.Add(-age))}
}

func TestWhetherTheServerIsAsked(t *testing.T) {
	skip := func(why string) Decision { return Decision{Skip, why} }
	ask, again := Decision{Outcome: Ask}, Decision{Outcome: Repeat}
	release := func(change func(*Input)) Input {
		in := Input{Enabled: true, Release: true, Suspension: suspend.Admit, Attempt: 3, Now: noon}
		if change != nil {
			change(&in)
		}
		return in
	}
	for name, tc := range map[string]struct {
		in   Input
		want Decision
	}{
		"a release is asked about":                          {release(nil), ask},
		"nothing is when the check is disabled":             {release(func(in *Input) { in.Enabled = false }), skip(Disabled)},
		"a change of no template is not":                    {release(func(in *Input) { in.Release = false }), skip(NotARelease)},
		"a touch or a rollback of our controller is not":    {release(func(in *Input) { in.ByController = true }), skip(ByController)},
		"what the suspension refuses is not":                {release(func(in *Input) { in.Suspension = suspend.Deny }), skip(Suspended)},
		"a repair of a suspended workload is not":           {release(func(in *Input) { in.Suspension = suspend.Repair }), skip(Repair)},
		"a way back of a suspended workload is not":         {release(func(in *Input) { in.Suspension = suspend.Rollback }), skip(Rollback)},
		"a way back of one that is not suspended is not":    {release(func(in *Input) { in.Succeeded = true }), skip(Rollback)},
		"a version that passed is not":                      {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomePass, time.Second) }), skip(PassedBefore)},
		"a version that passed long ago is not":             {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomePass, 6*24*time.Hour) }), skip(PassedBefore)},
		"a version that passed as another attempt is not":   {release(func(in *Input) { in.Attempt, in.Recorded = 9, known(v1alpha1.OutcomePass, time.Hour) }), skip(PassedBefore)},
		"a dry run is not":                                  {release(func(in *Input) { in.DryRun = true }), skip(DryRun)},
		"a dry run of what would not be asked is no news":   {release(func(in *Input) { in.DryRun, in.Succeeded = true, true }), skip(Rollback)},
		"a dry run of what failed is not told a new answer": {release(func(in *Input) { in.DryRun, in.Recorded = true, known(v1alpha1.OutcomeFail, time.Second) }), skip(DryRun)},
		"a fail is given again":                             {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomeFail, 29*time.Second) }), again},
		"no verdict is given again":                         {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomeNoVerdict, time.Second) }), again},
		"after a while it is asked again":                   {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomeFail, 30*time.Second) }), ask},
		"another attempt is asked about":                    {release(func(in *Input) { in.Attempt, in.Recorded = 4, known(v1alpha1.OutcomeFail, time.Second) }), ask},
		"the clock of another webhook may be ahead":         {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomeFail, -5*time.Second) }), again},
		"an answer from the future does not count":          {release(func(in *Input) { in.Recorded = known(v1alpha1.OutcomeFail, -time.Hour) }), ask},
		"a record without an answer does not count":         {release(func(in *Input) { in.Recorded = known("", time.Second) }), ask},
	} {
		if diff := cmp.Diff(tc.want, Decide(tc.in)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
