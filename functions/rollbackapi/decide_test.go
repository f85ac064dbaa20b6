package rollbackapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestDecide(t *testing.T) {
	kept := func(versions ...string) []savedtemplate.Saved {
		var out []savedtemplate.Saved
		for i, v := range slices.Backward(versions) {
			out = append(out, savedtemplate.Saved{Release: v1alpha1.Release{Version: v, Attempt: int64(i + 1)}})
		}
		return out
	}
	well := Input{Kind: workload.Deployment, Name: "web", OptedIn: true, Known: true,
		Release: v1alpha1.Release{Version: "bad", Attempt: 7}, Kept: kept("a", "b")}
	but := func(f func(*Input)) Input { in := well; f(&in); return in }
	for name, tc := range map[string]struct {
		in       Input
		to       string
		recorded bool
		// says are words of the problem.
		says []string
	}{
		"the newest success by default":  {in: well, to: "b"},
		"the version that is asked for":  {in: but(func(in *Input) { in.Version = "a" }), to: "a"},
		"with the attempt that was seen": {in: but(func(in *Input) { in.Attempt = 7 }), to: "b"},
		"not what failed since":          {in: but(func(in *Input) { in.Failed = map[string]bool{"b": true} }), to: "a"},
		"the same again is no conflict": {
			in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 7, Version: "b"} }), to: "b", recorded: true},
		"a wish about an attempt before does not stand in the way": {
			in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 6, Version: "a"} }), to: "b"},

		"another attempt": {in: but(func(in *Input) { in.Attempt = 6 }),
			says: []string{"at attempt 7 (version bad)", "about attempt 6", "send attempt 7 or none"}},
		"somebody else's wish": {in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 7, Version: "a"} }),
			says: []string{"ann asked at", "to version a", "ask about attempt 8"}},
		"the version it is at": {in: but(func(in *Input) { in.Version = "bad" }), says: []string{"is at version bad already, attempt 7"}},
		"a version that is not known": {in: but(func(in *Input) { in.Version = "c" }),
			says: []string{"version c of deployment web is not known to be good", "2 are: b, a"}},
		"a version that failed": {in: but(func(in *Input) { in.Version, in.Failed = "b", map[string]bool{"b": true} }),
			says: []string{"not known to be good", "1 are: a"}},
		"nothing to go back to": {in: but(func(in *Input) { in.Kept = kept("bad") }),
			says: []string{"none of the 1 versions", "release a repair", v1alpha1.IgnoredSuspendLabel}},
		"a namespace that is not guarded": {in: but(func(in *Input) { in.OptedIn = false }),
			says: []string{"not guarded", "kubectl label namespace"}},
		"a workload that is not stamped yet": {in: but(func(in *Input) { in.Known = false }), says: []string{"no version yet"}},
		"a workload that goes":               {in: but(func(in *Input) { in.Deleting = true }), says: []string{"being deleted"}},
		"a workload that a person paused": {in: but(func(in *Input) { in.Paused = true }),
			says: []string{"paused by hand", "kubectl rollout resume deployment/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			if d.To != tc.to || d.Recorded != tc.recorded {
				t.Errorf("got %+v", d)
			}
			if (d.Problem == nil) != (len(tc.says) == 0) {
				t.Fatalf("problem: %v", d.Problem)
			}
			for _, words := range tc.says {
				if !strings.Contains(d.Problem.message, words) || d.Problem.status != 409 {
					t.Errorf("%d %q does not say %q", d.Problem.status, d.Problem.message, words)
				}
			}
		})
	}
}
