package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestAReadyPodOfAReleaseAfterTheBaselineIsLabelledOnce(t *testing.T) {
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
		"a Ready pod of a release after the baseline is labeled": {
			in:   input(nil),
			want: Decision{Label: true},
		},
		"a pod that is not Ready, as in a crash loop, is not labeled": {
			in:   input(func(in *Input) { in.Ready = false }),
			want: Decision{Reason: "it is not ready"},
		},
		"a terminating pod is not labeled, even if it is Ready": {
			in:   input(func(in *Input) { in.Deleting = true }),
			want: Decision{Reason: "it is terminating"},
		},
		"a labeled pod is not labeled twice": {
			in:   input(func(in *Input) { in.Labeled = true }),
			want: Decision{Reason: "it has the label"},
		},
		"a pod of the baseline is not labeled": {
			in:   input(func(in *Input) { in.Release.Attempt = 0 }),
			want: Decision{Reason: "its release is the baseline"},
		},
		"a pod without a release is not labeled": {
			in:   input(func(in *Input) { in.HasRelease, in.Release = false, v1alpha1.Release{} }),
			want: Decision{Reason: "it belongs to no known release"},
		},
		"a pod outside opted-in namespaces is not labeled": {
			in:   input(func(in *Input) { in.OptedIn = false }),
			want: Decision{Reason: "its namespace is not opted in"},
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
