package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleaseOf(t *testing.T) {
	type want struct {
		Release  Release
		Known    bool
		Baseline bool
	}
	tests := map[string]struct {
		annotations map[string]string
		want        want
	}{
		"no annotations are no release": {},
		"a version alone is no release": {
			annotations: map[string]string{VersionKey: "v1"},
		},
		"an attempt alone is no release": {
			annotations: map[string]string{AttemptAnnotation: "1"},
		},
		"an attempt that is not a number is no release": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "one"},
		},
		"a negative attempt is no release": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "-1"},
		},
		"an attempt beyond int64 is no release": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "9223372036854775808"},
		},
		"an attempt that no workload reaches is no release": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "2147483648"},
		},
		"the highest attempt": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "2147483647"},
			want:        want{Release: Release{Version: "v1", Attempt: 2147483647}, Known: true},
		},
		"attempt 0 is a baseline": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "0"},
			want:        want{Release: Release{Version: "v1"}, Known: true, Baseline: true},
		},
		"attempt 3 is not a baseline": {
			annotations: map[string]string{VersionKey: "v1", AttemptAnnotation: "3"},
			want:        want{Release: Release{Version: "v1", Attempt: 3}, Known: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, ok := ReleaseOf(tc.annotations)
			if diff := cmp.Diff(tc.want, want{Release: r, Known: ok, Baseline: ok && r.IsBaseline()}); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}
