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
	succeeded := func(versions ...string) []savedtemplate.Saved {
		var out []savedtemplate.Saved
		for i, v := range slices.Backward(versions) {
			out = append(out, savedtemplate.Saved{Release: v1alpha1.Release{Version: v, Attempt: int64(i + 1)}})
		}
		return out
	}
	well := Input{Kind: workload.Deployment, Name: "web", OptedIn: true, Known: true,
		Release: v1alpha1.Release{Version: "bad", Attempt: 7}, Succeeded: succeeded("a", "b")}
	but := func(f func(*Input)) Input { in := well; f(&in); return in }
	for name, tc := range map[string]struct {
		in       Input
		to       string
		recorded bool
		// says are parts of the problem's message.
		says []string
	}{
		"default is the newest success": {in: well, to: "b"},
		"requested version":             {in: but(func(in *Input) { in.Version = "a" }), to: "a"},
		"expected attempt":              {in: but(func(in *Input) { in.Attempt = 7 }), to: "b"},
		"newest success failed since":   {in: but(func(in *Input) { in.Failed = map[string]bool{"b": true} }), to: "a"},
		"same request is recorded": {
			in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 7, Version: "b"} }), to: "b", recorded: true},
		"request for an earlier attempt is recorded": {
			in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 6, Version: "a"} }), to: "b"},

		"another attempt": {in: but(func(in *Input) { in.Attempt = 6 }),
			says: []string{"at attempt 7 (version bad)", "for attempt 6", "send attempt 7 or none"}},
		"other request is recorded": {in: but(func(in *Input) { in.Pending = &v1alpha1.RollbackRequest{User: "ann", Attempt: 7, Version: "a"} }),
			says: []string{"ann requested at", "to version a", "send attempt 8"}},
		"current version": {in: but(func(in *Input) { in.Version = "bad" }), says: []string{"already has version bad, attempt 7"}},
		"unknown version": {in: but(func(in *Input) { in.Version = "c" }),
			says: []string{"version c of deployment web is not known to be good", "good versions: [b, a]"}},
		"failed version": {in: but(func(in *Input) { in.Version, in.Failed = "b", map[string]bool{"b": true} }),
			says: []string{"not known to be good", "good versions: [a]"}},
		"no good version": {in: but(func(in *Input) { in.Succeeded = succeeded("bad") }),
			says: []string{"none of the 1 saved versions", "release a repair", v1alpha1.IgnoredSuspendLabel}},
		"namespace not opted in": {in: but(func(in *Input) { in.OptedIn = false }),
			says: []string{"not opted in", "kubectl label namespace", "--overwrite"}},
		"workload without a version": {in: but(func(in *Input) { in.Known = false }), says: []string{"no version yet"}},
		"workload terminating":       {in: but(func(in *Input) { in.Deleting = true }), says: []string{"is terminating"}},
		"workload paused by a person": {in: but(func(in *Input) { in.Paused = true }),
			says: []string{"is paused", "kubectl rollout resume deployment/web"}},
		"suspended workload paused by a person": {in: but(func(in *Input) { in.Paused, in.Suspended = true, true }), to: "b"},
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
