package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

var soon = time.Unix(1<<30, 0)

func apps(states ...api.State) func(*Facts) {
	return func(f *Facts) {
		for i, state := range states {
			if state != "" {
				set := f.Sets[i]
				f.Applications[set] = api.Application{ID: set, State: state, Attempt: 1}
			}
		}
	}
}

func settledBoth(f *Facts) {
	f.Breaker.Exists = true
	f.Breaker.Entry.Settled = map[string]int{"a": 1, "b": 1}
}

func open(o podbreaker.Outcome) func(*Facts) {
	return func(f *Facts) { f.Breaker.Outcome, f.Breaker.Next = o, soon }
}

func TestDecide(t *testing.T) {
	registered := func(f *Facts) { f.Registered = true }
	admitted := func(f *Facts) { f.BreakerAcquired = true }
	for name, tc := range map[string]struct {
		change []func(*Facts)
		want   Decision
	}{
		"a pod that goes gets nothing": {[]func(*Facts){apps(api.Granted, api.Granted), func(f *Facts) { f.Terminating = true }},
			Decision{Stop, "", time.Time{}, podmeta.ReasonPodTerminating}},
		"a pod without an address waits": {[]func(*Facts){func(f *Facts) { f.IPs = nil }},
			Decision{WaitForPod, "", time.Time{}, podmeta.ReasonWaitingForPodIP}},
		"a pod that could vanish waits": {[]func(*Facts){func(f *Facts) { f.HasFinalizer = false }},
			Decision{WaitForPod, "", time.Time{}, podmeta.ReasonWaitingForFinalizer}},
		"what is at the centre is read first": {[]func(*Facts){func(f *Facts) { f.ApplicationsKnown = false }},
			Decision{ReadApplications, "", time.Time{}, podmeta.ReasonRegistering}},
		"steps come before permissions": {nil,
			Decision{Register, "", time.Time{}, podmeta.ReasonRegistering}},
		"what the former sandbox has is taken back first": {[]func(*Facts){registered, func(f *Facts) { f.OtherIPs = true }},
			Decision{RevokeOtherIPs, "", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"the first attempt needs no leave": {[]func(*Facts){registered},
			Decision{Apply, "a", time.Time{}, podmeta.ReasonPermissionRequested}},
		"the other set is asked for before the first is polled": {[]func(*Facts){registered, apps(api.Requested)},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"both are on their way": {[]func(*Facts){registered, apps(api.Applying, api.Requested)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonPermissionApplying}},
		"one is granted, the other on its way": {[]func(*Facts){apps(api.Granted, api.Requested)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"both are granted": {[]func(*Facts){apps(api.Granted, api.Granted)},
			Decision{Complete, "", time.Time{}, podmeta.ReasonPermissionGranted}},
		"both are granted while a breaker is open": {[]func(*Facts){apps(api.Granted, api.Granted), open(podbreaker.OpenFailed)},
			Decision{Complete, "", time.Time{}, podmeta.ReasonPermissionGranted}},
		"a denial that was not counted": {[]func(*Facts){apps(api.Granted, api.Denied)},
			Decision{RecordFailure, "b", time.Time{}, podmeta.ReasonPermissionDenied}},
		"a failure that was not counted": {[]func(*Facts){apps(api.Failed, api.Applying)},
			Decision{RecordFailure, "a", time.Time{}, podmeta.ReasonPermissionFailed}},
		"a denial that was counted": {[]func(*Facts){registered, apps(api.Granted, api.Denied), settledBoth},
			Decision{AcquireBreaker, "", time.Time{}, podmeta.ReasonPermissionRequested}},
		"and the breaker gives leave": {[]func(*Facts){registered, apps(api.Granted, api.Denied), settledBoth, admitted},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"a failure before anything was asked for": {[]func(*Facts){registered, func(f *Facts) { f.Breaker.Exists = true }},
			Decision{AcquireBreaker, "", time.Time{}, podmeta.ReasonPermissionRequested}},
		"denied too often": {[]func(*Facts){apps(api.Denied, api.Granted), settledBoth, open(podbreaker.OpenDenied)},
			Decision{WaitForBreaker, "", time.Time{}, podmeta.ReasonBreakerOpenDenied}},
		"failed too often": {[]func(*Facts){apps(api.Failed, api.Failed), settledBoth, open(podbreaker.OpenFailed)},
			Decision{WaitForBreaker, "", soon, podmeta.ReasonBreakerOpenFailed}},
		"failed too often, but another set is on its way": {[]func(*Facts){apps(api.Failed, api.Applying), settledBoth, open(podbreaker.OpenFailed)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonPermissionApplying}},
		"another replica tries": {[]func(*Facts){apps(api.Failed, api.Failed), settledBoth, open(podbreaker.Busy)},
			Decision{WaitForBreaker, "", soon, podmeta.ReasonPermissionRequested}},
		"what is being taken back is waited for": {[]func(*Facts){registered, apps(api.Revoking, api.Granted)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"what is leaked is asked for again": {[]func(*Facts){registered, apps(api.Granted, api.Leaked), admitted},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"what was revoked is asked for again": {[]func(*Facts){registered, apps(api.Revoked, api.Granted), admitted},
			Decision{Apply, "a", time.Time{}, podmeta.ReasonPermissionRequested}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{IPs: []string{"10.0.0.1"}, HasFinalizer: true, ApplicationsKnown: true, Sets: []string{"a", "b"},
				Applications: map[string]api.Application{}, Breaker: podbreaker.Decision{Outcome: podbreaker.Closed}}
			for _, change := range tc.change {
				change(&f)
			}
			got := Decide(f)
			if got.Action != WaitForBreaker {
				got.Until = time.Time{}
			} else if got.Reason == podmeta.ReasonBreakerOpenDenied {
				got.Until = time.Time{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
