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

// known returns an answer for attempt 3, stored some time before noon.
func known(outcome v1alpha1.Outcome, age time.Duration) *v1alpha1.ReleaseCheckStatus {
	return &v1alpha1.ReleaseCheckStatus{Outcome: outcome, Attempt: 3, Time: metav1.NewMicroTime(noon.Add(-age))}
}

func TestDecideWhetherToAskTheServer(t *testing.T) {
	skip := func(why string) Decision { return Decision{Skip, why} }
	ask, again := Decision{Action: Ask}, Decision{Action: Reuse}
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
		"release":                                      {release(nil), ask},
		"check is disabled":                            {release(func(in *Input) { in.Enabled = false }), skip(Disabled)},
		"template is unchanged":                        {release(func(in *Input) { in.Release = false }), skip(NotARelease)},
		"update by the controller":                     {release(func(in *Input) { in.ByController = true }), skip(ByController)},
		"denied because of a suspension":               {release(func(in *Input) { in.Suspension = suspend.Deny }), skip(Suspended)},
		"repair":                                       {release(func(in *Input) { in.Suspension = suspend.Repair }), skip(Repair)},
		"rollback of a suspended workload":             {release(func(in *Input) { in.Suspension = suspend.Rollback }), skip(Rollback)},
		"rollback of a workload that is not suspended": {release(func(in *Input) { in.Succeeded = true }), skip(Rollback)},
		"version passed":                               {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomePass, time.Second) }), skip(PassedBefore)},
		"version passed six days ago":                  {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomePass, 6*24*time.Hour) }), skip(PassedBefore)},
		"version passed in another attempt":            {release(func(in *Input) { in.Attempt, in.Stored = 9, known(v1alpha1.OutcomePass, time.Hour) }), skip(PassedBefore)},
		"dry run":                                      {release(func(in *Input) { in.DryRun = true }), skip(DryRun)},
		"dry run of a rollback":                        {release(func(in *Input) { in.DryRun, in.Succeeded = true, true }), skip(Rollback)},
		"dry run of a version that failed":             {release(func(in *Input) { in.DryRun, in.Stored = true, known(v1alpha1.OutcomeFail, time.Second) }), skip(DryRun)},
		"recent fail":                                  {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomeFail, 29*time.Second) }), again},
		"recent no verdict":                            {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomeNoVerdict, time.Second) }), again},
		"fail has expired":                             {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomeFail, 30*time.Second) }), ask},
		"fail of another attempt":                      {release(func(in *Input) { in.Attempt, in.Stored = 4, known(v1alpha1.OutcomeFail, time.Second) }), ask},
		"fail with a time 5 s in the future":           {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomeFail, -5*time.Second) }), again},
		"fail with a time 1 h in the future":           {release(func(in *Input) { in.Stored = known(v1alpha1.OutcomeFail, -time.Hour) }), ask},
		"stored answer without an outcome":             {release(func(in *Input) { in.Stored = known("", time.Second) }), ask},
	} {
		if diff := cmp.Diff(tc.want, Decide(tc.in)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
