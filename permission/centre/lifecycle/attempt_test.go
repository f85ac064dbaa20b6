package lifecycle

import (
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestWhatAskingForAnApplicationComesTo(t *testing.T) {
	for _, tc := range []struct {
		state                 api.State
		asked, busyThen, dead Attempt
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
			if got := NextAttempt(tc.state, false, true); got != tc.asked {
				t.Errorf("asked for: %s, want %s", got, tc.asked)
			}
			if got := NextAttempt(tc.state, true, true); got != tc.busyThen {
				t.Errorf("asked for while a provider is called: %s, want %s", got, tc.busyThen)
			}
			if got := NextAttempt(tc.state, false, false); got != tc.dead {
				t.Errorf("reset: %s, want %s", got, tc.dead)
			}
		})
	}
}
