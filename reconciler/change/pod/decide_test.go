package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestDecide(t *testing.T) {
	input := func(change func(*Input)) Input {
		in := Input{OptedIn: true, Ready: true, HasRelease: true, Release: v1alpha1.Release{Version: "v1", Attempt: 1}}
		if change != nil {
			change(&in)
		}
		return in
	}
	tests := map[string]struct {
		in   Input
		want Decision
	}{
		"a ready pod of a release is finished": {
			in:   input(nil),
			want: Decision{Finish: true},
		},
		"a pod that is not ready, one in a crash loop for instance, is not": {
			in:   input(func(in *Input) { in.Ready = false }),
			want: Decision{Reason: "it is not ready"},
		},
		"a pod that is being deleted is not, ready as it may be": {
			in:   input(func(in *Input) { in.Deleting = true }),
			want: Decision{Reason: "it is being deleted"},
		},
		"a finished pod is not finished twice": {
			in:   input(func(in *Input) { in.Finished = true }),
			want: Decision{Reason: "it is finished already"},
		},
		"a pod of the baseline is not judged": {
			in:   input(func(in *Input) { in.Release.Attempt = 0 }),
			want: Decision{Reason: "its release is the baseline"},
		},
		"a pod without a release is left alone": {
			in:   input(func(in *Input) { in.HasRelease, in.Release = false, v1alpha1.Release{} }),
			want: Decision{Reason: "it belongs to no known release"},
		},
		"a pod outside guarded namespaces is left alone": {
			in:   input(func(in *Input) { in.OptedIn = false }),
			want: Decision{Reason: "its namespace is not guarded"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Decide(tc.in)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}
