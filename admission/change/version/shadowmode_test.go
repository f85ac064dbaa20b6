package version

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// In shadow mode nothing is held, so the decision follows from the result of the
// previous release.
func TestShadowModeAdmitsAndWarns(t *testing.T) {
	at := build(versioned(1))
	next := func(more ...builder.Option) *appsv1.Deployment {
		return build(append([]builder.Option{versioned(1), image("busybox:2")}, more...)...)
	}
	fail := builder.ChangeWorkload(at, 1, v1alpha1.ReleaseSuspend)
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		known    []*v1alpha1.ChangeWorkload
		good     []string
		off      bool
		want     string
	}{
		"release after a failed release":                    {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, want: v1alpha1.ReasonShadow},
		"release of a workload that was held":               {old: build(versioned(1), builder.Held), new: next(builder.Held), want: v1alpha1.ReasonShadow},
		"release after a release that passed":               {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{builder.ChangeWorkload(at, 1, v1alpha1.ReleaseSuccess)}, want: Released},
		"release after a failed release of another attempt": {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{builder.ChangeWorkload(at, 7, v1alpha1.ReleaseSuspend)}, want: Released},
		"repair":       {old: at, new: next(label(v1alpha1.IgnoredSuspendLabel, "true")), known: []*v1alpha1.ChangeWorkload{fail}, want: Released},
		"rollback":     {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, good: []string{builder.Version(next())}, want: Released},
		"other change": {old: at, new: build(versioned(1), label("team", "a")), known: []*v1alpha1.ChangeWorkload{fail}, want: Kept},
		"release after a failed release, no shadow mode": {old: at, new: next(), known: []*v1alpha1.ChangeWorkload{fail}, off: true, want: Released},
	} {
		t.Run(name, func(t *testing.T) {
			in := settings.Default()
			in.Shadow, in.Blocking = !tc.off, tc.off
			s := &Handler{Kind: workload.Deployment, Settings: func() settings.Settings { return in },
				History: admissiontest.History{Known: tc.known, Successes: tc.good}}
			a := s.Admit(t.Context(), admissiontest.Request(t, tc.old, tc.new))
			if !a.Response.Allowed || a.Decision != tc.want {
				t.Errorf("allowed %v, decision is %s, want %s", a.Response.Allowed, a.Decision, tc.want)
			}
			warned := strings.Contains(strings.Join(a.Response.Warnings, " "), "is suspended")
			if warned != (tc.want == v1alpha1.ReasonShadow) {
				t.Errorf("warnings %q", a.Response.Warnings)
			}
		})
	}
}
