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
		{api.Requested, AttemptSame, AttemptSame, AttemptSame},
		{api.Applying, AttemptSame, AttemptSame, AttemptSame},
		{api.Granted, AttemptSame, AttemptSame, AttemptSame},
		{api.Denied, AttemptRest, AttemptRest, AttemptRest},
		{api.Failed, AttemptRest, AttemptRest, AttemptRest},
		{api.Revoking, AttemptRefused, AttemptRefused, AttemptRefused},
		{api.Revoked, AttemptAnew, AttemptAnew, AttemptRefused},
		{api.Leaked, AttemptAll, AttemptRefused, AttemptRefused},
	} {
		t.Run(string(tc.state), func(t *testing.T) {
			if got := Again(tc.state, false, true); got != tc.asked {
				t.Errorf("asked for: %s, want %s", got, tc.asked)
			}
			if got := Again(tc.state, true, true); got != tc.busyThen {
				t.Errorf("asked for while a provider is called: %s, want %s", got, tc.busyThen)
			}
			if got := Again(tc.state, false, false); got != tc.dead {
				t.Errorf("reset: %s, want %s", got, tc.dead)
			}
		})
	}
}
