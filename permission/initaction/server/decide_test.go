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
	admitted := func(f *Facts) { f.Admitted = true }
	for name, tc := range map[string]struct {
		change []func(*Facts)
		want   Decision
	}{
		"a pod that goes gets nothing": {[]func(*Facts){apps(api.Granted, api.Granted), func(f *Facts) { f.Going = true }},
			Decision{Stop, "", time.Time{}, podmeta.ReasonTerminating}},
		"a pod without an address waits": {[]func(*Facts){func(f *Facts) { f.IPs = nil }},
			Decision{AwaitPod, "", time.Time{}, podmeta.ReasonNoIP}},
		"a pod that could vanish waits": {[]func(*Facts){func(f *Facts) { f.Finalizer = false }},
			Decision{AwaitPod, "", time.Time{}, podmeta.ReasonNoFinalizer}},
		"what is at the centre is read first": {[]func(*Facts){func(f *Facts) { f.Known = false }},
			Decision{Read, "", time.Time{}, podmeta.ReasonRegistering}},
		"steps come before permissions": {nil,
			Decision{Register, "", time.Time{}, podmeta.ReasonRegistering}},
		"what the former sandbox has is taken back first": {[]func(*Facts){registered, func(f *Facts) { f.Others = true }},
			Decision{RevokeOthers, "", time.Time{}, podmeta.ReasonRevoking}},
		"the first attempt needs no leave": {[]func(*Facts){registered},
			Decision{Ask, "a", time.Time{}, podmeta.ReasonRequested}},
		"the other set is asked for before the first is polled": {[]func(*Facts){registered, apps(api.Requested)},
			Decision{Ask, "b", time.Time{}, podmeta.ReasonRequested}},
		"both are on their way": {[]func(*Facts){registered, apps(api.Applying, api.Requested)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonApplying}},
		"one is granted, the other on its way": {[]func(*Facts){apps(api.Granted, api.Requested)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonRequested}},
		"both are granted": {[]func(*Facts){apps(api.Granted, api.Granted)},
			Decision{Grant, "", time.Time{}, podmeta.ReasonGranted}},
		"both are granted while a breaker is open": {[]func(*Facts){apps(api.Granted, api.Granted), open(podbreaker.OpenFailed)},
			Decision{Grant, "", time.Time{}, podmeta.ReasonGranted}},
		"a denial that was not counted": {[]func(*Facts){apps(api.Granted, api.Denied)},
			Decision{Settle, "b", time.Time{}, podmeta.ReasonDenied}},
		"a failure that was not counted": {[]func(*Facts){apps(api.Failed, api.Applying)},
			Decision{Settle, "a", time.Time{}, podmeta.ReasonFailed}},
		"a denial that was counted": {[]func(*Facts){registered, apps(api.Granted, api.Denied), settledBoth},
			Decision{Begin, "", time.Time{}, podmeta.ReasonRequested}},
		"and the breaker gives leave": {[]func(*Facts){registered, apps(api.Granted, api.Denied), settledBoth, admitted},
			Decision{Ask, "b", time.Time{}, podmeta.ReasonRequested}},
		"a failure before anything was asked for": {[]func(*Facts){registered, func(f *Facts) { f.Breaker.Exists = true }},
			Decision{Begin, "", time.Time{}, podmeta.ReasonRequested}},
		"denied too often": {[]func(*Facts){apps(api.Denied, api.Granted), settledBoth, open(podbreaker.OpenDenied)},
			Decision{Hold, "", time.Time{}, podmeta.ReasonBreakerDenied}},
		"failed too often": {[]func(*Facts){apps(api.Failed, api.Failed), settledBoth, open(podbreaker.OpenFailed)},
			Decision{Hold, "", soon, podmeta.ReasonBreakerFailed}},
		"failed too often, but another set is on its way": {[]func(*Facts){apps(api.Failed, api.Applying), settledBoth, open(podbreaker.OpenFailed)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonApplying}},
		"another replica tries": {[]func(*Facts){apps(api.Failed, api.Failed), settledBoth, open(podbreaker.Busy)},
			Decision{Hold, "", soon, podmeta.ReasonRequested}},
		"what is being taken back is waited for": {[]func(*Facts){registered, apps(api.Revoking, api.Granted)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonRevoking}},
		"what is leaked is asked for again": {[]func(*Facts){registered, apps(api.Granted, api.Leaked), admitted},
			Decision{Ask, "b", time.Time{}, podmeta.ReasonRequested}},
		"what was revoked is asked for again": {[]func(*Facts){registered, apps(api.Revoked, api.Granted), admitted},
			Decision{Ask, "a", time.Time{}, podmeta.ReasonRequested}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{IPs: []string{"10.0.0.1"}, Finalizer: true, Known: true, Sets: []string{"a", "b"},
				Applications: map[string]api.Application{}, Breaker: podbreaker.Decision{Outcome: podbreaker.Closed}}
			for _, change := range tc.change {
				change(&f)
			}
			got := Decide(f)
			if got.Action != Hold {
				got.Until = time.Time{}
			} else if got.Reason == podmeta.ReasonBreakerDenied {
				got.Until = time.Time{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
