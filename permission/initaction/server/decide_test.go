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

func apps(states ...api.State) func(*Input) {
	return func(in *Input) {
		for i, state := range states {
			if state != "" {
				set := in.Sets[i]
				in.Applications[set] = api.Application{ID: set, State: state, Attempt: 1}
			}
		}
	}
}

func bothCounted(in *Input) {
	in.Breaker.Exists = true
	in.Breaker.Entry.Counted = map[string]int{"a": 1, "b": 1}
}

func withOutcome(o podbreaker.State) func(*Input) {
	return func(in *Input) { in.Breaker.State, in.Breaker.Next = o, soon }
}

func TestDecide(t *testing.T) {
	prepared := func(in *Input) { in.Prepared = true }
	otherIPs := func(in *Input) { in.OtherIPs = true }
	admitted := func(in *Input) { in.BreakerAcquired = true }
	for name, tc := range map[string]struct {
		change []func(*Input)
		want   Decision
	}{
		"a pod that is being deleted": {[]func(*Input){apps(api.Granted, api.Granted), func(in *Input) { in.DeletedOrCompleted = true }},
			Decision{Stop, "", time.Time{}, podmeta.ReasonPodTerminating}},
		"a pod without an IP address": {[]func(*Input){func(in *Input) { in.IPs = nil }},
			Decision{WaitForPod, "", time.Time{}, podmeta.ReasonWaitingForPodIP}},
		"a pod with another address than that of the call": {[]func(*Input){func(in *Input) { in.OtherSource = true }, apps(api.Granted, api.Granted)},
			Decision{CallAgain, "", time.Time{}, reasonSourceAddressMismatch}},
		"a pod that is being deleted, with another address": {[]func(*Input){func(in *Input) { in.OtherSource, in.DeletedOrCompleted = true, true }},
			Decision{Stop, "", time.Time{}, podmeta.ReasonPodTerminating}},
		"a pod without the finalizer": {[]func(*Input){func(in *Input) { in.HasFinalizer = false }},
			Decision{WaitForPod, "", time.Time{}, podmeta.ReasonWaitingForFinalizer}},
		"applications are unknown": {[]func(*Input){func(in *Input) { in.ApplicationsKnown = false }},
			Decision{ReadApplications, "", time.Time{}, podmeta.ReasonRegistering}},
		"preparations run before permissions": {nil,
			Decision{Prepare, "", time.Time{}, podmeta.ReasonRegistering}},
		"grants of the previous sandbox are revoked before the preparations": {[]func(*Input){otherIPs},
			Decision{RevokeOtherIPs, "", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"grants of the previous sandbox are revoked while the breaker is open": {[]func(*Input){otherIPs, apps("", api.Denied), bothCounted, withOutcome(podbreaker.OpenDenied)},
			Decision{RevokeOtherIPs, "", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"grants of the previous sandbox are revoked before a denial is counted": {[]func(*Input){otherIPs, apps(api.Granted, api.Denied)},
			Decision{RevokeOtherIPs, "", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"a pod that is being deleted, with grants of a previous sandbox": {[]func(*Input){otherIPs, func(in *Input) { in.DeletedOrCompleted = true }},
			Decision{Stop, "", time.Time{}, podmeta.ReasonPodTerminating}},
		"the first attempt does not acquire the breaker": {[]func(*Input){prepared},
			Decision{Apply, "a", time.Time{}, podmeta.ReasonPermissionRequested}},
		"all sets are requested before one is polled": {[]func(*Input){prepared, apps(api.Requested)},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"both sets are pending": {[]func(*Input){prepared, apps(api.Applying, api.Requested)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonPermissionApplying}},
		"one set is granted, the other pending": {[]func(*Input){apps(api.Granted, api.Requested)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"both sets are granted": {[]func(*Input){apps(api.Granted, api.Granted)},
			Decision{Complete, "", time.Time{}, podmeta.ReasonPermissionGranted}},
		"both sets are granted while the breaker is open": {[]func(*Input){apps(api.Granted, api.Granted), withOutcome(podbreaker.OpenFailed)},
			Decision{Complete, "", time.Time{}, podmeta.ReasonPermissionGranted}},
		"an uncounted denial": {[]func(*Input){apps(api.Granted, api.Denied)},
			Decision{RecordFailure, "b", time.Time{}, podmeta.ReasonPermissionDenied}},
		"an uncounted failure": {[]func(*Input){apps(api.Failed, api.Applying)},
			Decision{RecordFailure, "a", time.Time{}, podmeta.ReasonPermissionFailed}},
		"a counted denial acquires the breaker": {[]func(*Input){prepared, apps(api.Granted, api.Denied), bothCounted},
			Decision{AcquireBreaker, "", time.Time{}, podmeta.ReasonPermissionRequested}},
		"a counted denial with the breaker acquired": {[]func(*Input){prepared, apps(api.Granted, api.Denied), bothCounted, admitted},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"a failure before the first request acquires the breaker": {[]func(*Input){prepared, func(in *Input) { in.Breaker.Exists = true }},
			Decision{AcquireBreaker, "", time.Time{}, podmeta.ReasonPermissionRequested}},
		"denied too often": {[]func(*Input){apps(api.Denied, api.Granted), bothCounted, withOutcome(podbreaker.OpenDenied)},
			Decision{WaitForBreaker, "", time.Time{}, podmeta.ReasonBreakerOpenDenied}},
		"failed too often": {[]func(*Input){apps(api.Failed, api.Failed), bothCounted, withOutcome(podbreaker.OpenFailed)},
			Decision{WaitForBreaker, "", soon, podmeta.ReasonBreakerOpenFailed}},
		"failed too often while another set is pending": {[]func(*Input){apps(api.Failed, api.Applying), bothCounted, withOutcome(podbreaker.OpenFailed)},
			Decision{Poll, "b", time.Time{}, podmeta.ReasonPermissionApplying}},
		"another replica has the breaker": {[]func(*Input){apps(api.Failed, api.Failed), bothCounted, withOutcome(podbreaker.Busy)},
			Decision{WaitForBreaker, "", soon, podmeta.ReasonPermissionRequested}},
		"a set is being revoked": {[]func(*Input){prepared, apps(api.Revoking, api.Granted)},
			Decision{Poll, "a", time.Time{}, podmeta.ReasonPermissionRevoking}},
		"a leaked set is requested again": {[]func(*Input){prepared, apps(api.Granted, api.Leaked), admitted},
			Decision{Apply, "b", time.Time{}, podmeta.ReasonPermissionRequested}},
		"a revoked set is requested again": {[]func(*Input){prepared, apps(api.Revoked, api.Granted), admitted},
			Decision{Apply, "a", time.Time{}, podmeta.ReasonPermissionRequested}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{IPs: []string{"10.0.0.1"}, HasFinalizer: true, ApplicationsKnown: true, Sets: []string{"a", "b"},
				Applications: map[string]api.Application{}, Breaker: podbreaker.Decision{State: podbreaker.MayBegin}}
			for _, change := range tc.change {
				change(&in)
			}
			got := Decide(in)
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
