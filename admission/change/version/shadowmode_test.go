package version

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/gen"
)

// In shadow nothing is held, so the way a release is decided follows from what
// became of the one before it.
func TestInShadowWhatWouldHaveBeenRefusedIsAdmittedAndTold(t *testing.T) {
	at := build(stamped(1))
	next := func(more ...gen.Option) *appsv1.Deployment {
		return build(append([]gen.Option{stamped(1), image("busybox:2")}, more...)...)
	}
	fail := gen.ChangeWorkload(at, 1, v1alpha1.WorkloadSuspend)
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		known    []*v1alpha1.ChangeWorkload
		good     []string
		off      bool
		want     string
	}{
		"a release after one that failed":             {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, want: v1alpha1.ReasonShadow},
		"a release of what was held before":           {old: build(stamped(1), gen.Held), new: next(gen.Held), want: v1alpha1.ReasonShadow},
		"a release after one that passed":             {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{gen.ChangeWorkload(at, 1, v1alpha1.WorkloadSuccess)}, want: Released},
		"a release after one of an earlier attempt":   {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{gen.ChangeWorkload(at, 7, v1alpha1.WorkloadSuspend)}, want: Released},
		"a repair, which would have been admitted":    {old: at, new: next(label(v1alpha1.IgnoredSuspendLabel, "true")), known: []*v1alpha1.ChangeWorkload{fail}, want: Released},
		"a way back, which would have been admitted":  {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, good: []string{gen.Version(next())}, want: Released},
		"what is no release":                          {old: at, new: build(stamped(1), label("team", "a")), known: []*v1alpha1.ChangeWorkload{fail}, want: Kept},
		"a release after one that failed, not shadow": {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, off: true, want: Released},
	} {
		t.Run(name, func(t *testing.T) {
			in := settings.Default()
			in.Shadow, in.Blocking = !tc.off, tc.off
			s := &Handler{Kind: workload.Deployment, Settings: func() settings.Settings { return in },
				History: admissiontest.History{Known: tc.known, Successes: tc.good}}
			a := s.Admit(t.Context(), admissiontest.Request(t, tc.old, tc.new))
			if !a.Response.Allowed || a.Decision != tc.want {
				t.Errorf("allowed %v, counted as %s, want %s", a.Response.Allowed, a.Decision, tc.want)
			}
			warned := strings.Contains(strings.Join(a.Response.Warnings, " "), "is suspended")
			if warned != (tc.want == v1alpha1.ReasonShadow) {
				t.Errorf("warnings %q", a.Response.Warnings)
			}
		})
	}
}
