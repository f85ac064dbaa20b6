package savedtemplates

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestDecide(t *testing.T) {
	success := Input{Current: true, Attempt: 3, Phase: v1alpha1.ReleaseSuccess, Reason: v1alpha1.ReasonAllPodsPassed,
		Pods: 2, Replicas: 2, Complete: true, VersionRecorded: true}
	but := func(f func(*Input)) Input {
		in := success
		f(&in)
		return in
	}
	for name, tc := range map[string]struct {
		in   Input
		want Decision
	}{
		"the template of a Success is saved":           {success, Save},
		"also when a pod has become unavailable since": {but(func(in *Input) { in.Complete = false }), Save},
		"not twice": {but(func(in *Input) { in.Saved = true }), Leave},
		"not that of a release which is not the current": {but(func(in *Input) { in.Current = false }), Leave},
		"not before the release is a Success":            {but(func(in *Input) { in.Phase = v1alpha1.ReleaseRunning }), Leave},
		"not when it had no pod":                         {but(func(in *Input) { in.Pods, in.Replicas = 0, 0 }), Leave},
		"not when the template got past the webhook":     {but(func(in *Input) { in.VersionRecorded = false }), Leave},
		"not where the workload's controller would adopt it": {
			but(func(in *Input) { in.SelectsSavedTemplates = true }), Skip},
		"a baseline whose pods are all available is saved": {
			but(func(in *Input) { in.Attempt, in.Pods = 0, 0 }), Save},
		"a baseline that is not well is waited for": {
			but(func(in *Input) { in.Attempt, in.Complete = 0, false }), Wait},
		"a baseline without pods proves nothing": {
			but(func(in *Input) { in.Attempt, in.Pods, in.Replicas = 0, 0, 0 }), Wait},
		"failed": {
			but(func(in *Input) { in.Phase, in.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed }), Delete},
		"failed after it succeeded": {
			but(func(in *Input) {
				in.Phase, in.Reason, in.Saved = v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed, true
			}), Delete},
		"failed, not current": {
			but(func(in *Input) {
				in.Current, in.Phase, in.Reason, in.Saved = false, v1alpha1.ReleaseFailed, v1alpha1.ReasonCheckFailed, true
			}), Delete},
		"order check failed": {
			but(func(in *Input) { in.Phase, in.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonOrderCheckFailed }), Delete},
		"unjudged": {
			but(func(in *Input) { in.Phase, in.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonOrderNotAccepted }), Leave},
		"failed check was lost": {
			but(func(in *Input) { in.Phase, in.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonFailedCheckLost }), Leave},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.in); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
