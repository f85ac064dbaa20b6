package version

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestDecide(t *testing.T) {
	at := func(version string, attempt int64) v1alpha1.Release {
		return v1alpha1.Release{Version: version, Attempt: attempt}
	}
	for name, tc := range map[string]struct {
		in   Input
		want Decision
	}{
		"a created Deployment is attempt 1": {
			Input{Created: true, Version: "a"}, Decision{at("a", 1), Released},
		},
		"a changed template is a release with the next attempt": {
			Input{TemplateChanged: true, Before: at("a", 4), Known: true, Version: "b"}, Decision{at("b", 5), Released},
		},
		"a version that is applied again is a new attempt": {
			Input{TemplateChanged: true, Before: at("b", 5), Known: true, Version: "a"}, Decision{at("a", 6), Released},
		},
		"a change that our types do not see is a new attempt of the same version": {
			Input{TemplateChanged: true, Before: at("a", 1), Known: true, Version: "a"}, Decision{at("a", 2), Released},
		},
		"an attempt that no workload reaches begins again": {
			Input{TemplateChanged: true, Before: at("a", math.MaxInt64), Known: true, Version: "b"}, Decision{at("b", 1), Released},
		},
		"so does the highest attempt": {
			Input{TemplateChanged: true, Before: at("a", math.MaxInt32), Known: true, Version: "b"}, Decision{at("b", 1), Released},
		},
		"a change of a baseline is attempt 1": {
			Input{TemplateChanged: true, Before: at("a", 0), Known: true, Version: "b"}, Decision{at("b", 1), Released},
		},
		"a change of a Deployment that is older than the opt-in is attempt 1": {
			Input{TemplateChanged: true, Version: "b"}, Decision{at("b", 1), Released},
		},
		"what runs when its namespace is opted in is the baseline": {
			Input{Version: "a"}, Decision{at("a", 0), Baselined},
		},
		"a readmission of what runs when its namespace is opted in makes it the baseline": {
			Input{Readmission: true, Version: "a"}, Decision{at("a", 0), Baselined},
		},
		"a readmission after a missed change makes it a release": {
			Input{Readmission: true, Before: at("a", 1), Known: true, Version: "b"}, Decision{at("b", 2), Released},
		},
		"a readmission of a complete object changes nothing": {
			Input{Readmission: true, Before: at("a", 1), Known: true, Version: "a"}, Decision{at("a", 1), Kept},
		},
		"an object whose creation the webhook missed is attempt 1": {
			Input{Readmission: true, Missed: true, Version: "a"}, Decision{at("a", 1), Released},
		},
		"a lost release annotation is restored": {
			Input{Readmission: true, Before: at("a", 4), Known: true, Recovered: true, Version: "a"}, Decision{at("a", 4), Kept},
		},
		"a baseline whose release annotation was lost stays a baseline": {
			Input{Readmission: true, Before: at("a", 0), Known: true, Recovered: true, Version: "a"}, Decision{at("a", 0), Kept},
		},
		"an object that was replaced while the webhook was unreachable is the next attempt": {
			Input{Readmission: true, Before: at("a", 4), Known: true, Recovered: true, Version: "b"}, Decision{at("b", 5), Released},
		},
		"it is so, too, if the next update is not a readmission": {
			Input{Before: at("a", 4), Known: true, Recovered: true, Version: "b"}, Decision{at("b", 5), Released},
		},
		"an attempt of a ChangeWorkload that is too high begins again": {
			Input{Readmission: true, Before: at("a", v1alpha1.MaxAttempt+1), Known: true, Recovered: true, Version: "a"}, Decision{at("a", 1), Released},
		},
		"a release after a lost release annotation is the next attempt": {
			Input{TemplateChanged: true, Before: at("a", 4), Known: true, Recovered: true, Version: "b"}, Decision{at("b", 5), Released},
		},
		"any other update keeps the release": {
			Input{Before: at("a", 1), Known: true, Version: "a"}, Decision{at("a", 1), Kept},
		},
		"a new default of Kubernetes is not a release": {
			Input{Before: at("a", 1), Known: true, Version: "a-with-default"}, Decision{at("a", 1), Kept},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			read, ok := v1alpha1.ReleaseOf(map[string]string{
				v1alpha1.VersionKey: got.Release.Version, v1alpha1.AttemptAnnotation: strconv.FormatInt(got.Release.Attempt, 10)})
			if !ok || read != got.Release {
				t.Errorf("the release is read as %+v, %v", read, ok)
			}
		})
	}
}
