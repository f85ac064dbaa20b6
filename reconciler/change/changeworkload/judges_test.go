package changeworkload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

func TestTheJudgesOfABatchAreThoseThatAreConfigured(t *testing.T) {
	check := func(edit ...func(*judgev1alpha1.MetricCheckSpec)) *judgev1alpha1.MetricCheck {
		c := &judgev1alpha1.MetricCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}}
		for _, f := range edit {
			f(&c.Spec)
		}
		return c
	}
	metrics := v1alpha1.Judge{Name: "metrics", TimeoutSeconds: 420, NoVerdict: v1alpha1.NoVerdictHold, Check: "shop/checkout"}
	server := v1alpha1.Judge{Name: "server"}
	optional := func(j v1alpha1.Judge) v1alpha1.Judge { j.Optional = true; return j }
	for name, tc := range map[string]struct {
		check    *judgev1alpha1.MetricCheck
		server   bool
		named    []string
		rollback bool
		failed   []string
		want     []v1alpha1.Judge
	}{
		"nothing is configured":          {},
		"the server alone":               {server: true},
		"the server alone, and named":    {server: true, named: []string{"server"}},
		"a MetricCheck without a server": {check: check(), want: []v1alpha1.Judge{metrics}},
		"a MetricCheck beside a server":  {check: check(), server: true, want: []v1alpha1.Judge{metrics, server}},
		"only the metrics must answer":   {check: check(), server: true, named: []string{"metrics"}, want: []v1alpha1.Judge{metrics, optional(server)}},
		"only the server must answer":    {check: check(), server: true, named: []string{"server"}, want: []v1alpha1.Judge{optional(metrics), server}},
		"metrics named without a check":  {server: true, named: []string{"metrics"}},
		"the server named, but missing":  {check: check(), named: []string{"server"}, want: []v1alpha1.Judge{metrics}},
		"another judge":                  {named: []string{"canary"}, want: []v1alpha1.Judge{{Name: "canary"}}},
		"a rollback is not compared":     {check: check(), rollback: true},
		"not with a failed version": {check: check(), failed: []string{"v2"}, want: []v1alpha1.Judge{{
			Name: "metrics", TimeoutSeconds: 420, NoVerdict: v1alpha1.NoVerdictHold, Check: "shop/checkout", FailedVersions: []string{"v2"},
		}}},
		"a rollback beside the server": {check: check(), server: true, rollback: true},
		"another duration and another policy": {check: check(func(s *judgev1alpha1.MetricCheckSpec) {
			s.AnalysisDuration, s.InsufficientDataPolicy = metav1.Duration{Duration: time.Minute}, judgev1alpha1.InsufficientDataFail
		}), want: []v1alpha1.Judge{{Name: "metrics", TimeoutSeconds: 180, NoVerdict: v1alpha1.NoVerdictFail, Check: "shop/checkout"}}},
		"with a probation": {check: check(func(s *judgev1alpha1.MetricCheckSpec) {
			s.Probation = &metav1.Duration{Duration: 24 * time.Hour}
		}), want: []v1alpha1.Judge{{Name: "metrics", TimeoutSeconds: 420, NoVerdict: v1alpha1.NoVerdictHold, Check: "shop/checkout", ProbationSeconds: 86400}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			s.Judges = tc.named
			got := judgesOf(Input{Settings: s, ServerConfigured: tc.server, Workload: Workload{IsRollback: tc.rollback}}, tc.check, tc.failed)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
