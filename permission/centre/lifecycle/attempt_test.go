package lifecycle

import (
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestTheNextAttemptDependsOnTheState(t *testing.T) {
	for _, tc := range []struct {
		state                        api.State
		podExists, callActive, reset AttemptScope
	}{
		{api.Requested, AttemptNone, AttemptNone, AttemptNone},
		{api.Applying, AttemptNone, AttemptNone, AttemptNone},
		{api.Granted, AttemptNone, AttemptNone, AttemptNone},
		{api.Denied, AttemptRemaining, AttemptRemaining, AttemptRemaining},
		{api.Failed, AttemptRemaining, AttemptRemaining, AttemptRemaining},
		{api.Revoking, AttemptRejected, AttemptRejected, AttemptRejected},
		{api.Revoked, AttemptCurrentSet, AttemptCurrentSet, AttemptRejected},
		{api.Leaked, AttemptAll, AttemptRejected, AttemptRejected},
	} {
		t.Run(string(tc.state), func(t *testing.T) {
			if got := NextAttempt(tc.state, false, true); got != tc.podExists {
				t.Errorf("request: %s, want %s", got, tc.podExists)
			}
			if got := NextAttempt(tc.state, true, true); got != tc.callActive {
				t.Errorf("request during a provider call: %s, want %s", got, tc.callActive)
			}
			if got := NextAttempt(tc.state, false, false); got != tc.reset {
				t.Errorf("reset: %s, want %s", got, tc.reset)
			}
		})
	}
}
