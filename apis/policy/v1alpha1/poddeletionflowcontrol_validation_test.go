package v1alpha1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnIntervalIsAGoDurationOrDays(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute,
		"1d": day, "30d": 30 * day, "1d12h": 36 * time.Hour, "0d30s": 30 * time.Second,
	} {
		if got, err := ParseInterval(in); err != nil || got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "10", "d", "-1d", "1.5d", "1d-1h", "1d24h", "1dd", "1h1d", "1 d", "106752d", "99999999999999999999d", "ten minutes"} {
		if got, err := ParseInterval(in); err == nil {
			t.Errorf("%q was parsed as %s", in, got)
		}
	}
}

func TestARejectedFlowControlNamesTheFieldAndTheFix(t *testing.T) {
	rule := func(interval string, limit int64) LimitRule { return LimitRule{Interval: interval, Limit: limit} }
	for name, tc := range map[string]struct {
		change func(*PodDeletionFlowControl)
		// want are parts of the message; empty if it is valid.
		want []string
	}{
		"one rule":         {func(*PodDeletionFlowControl) {}, nil},
		"a limit of 0":     {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Limit = 0 }, nil},
		"the longest":      {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "30d" }, nil},
		"no rule":          {func(f *PodDeletionFlowControl) { f.Spec.LimitRules = nil }, []string{"spec.limitRules", "interval: 10m"}},
		"too many rules":   {func(f *PodDeletionFlowControl) { f.Spec.LimitRules = make([]LimitRule, 9) }, []string{"9 rules: spec.limitRules", "at most 8"}},
		"no unit":          {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "10" }, []string{`"10" is not a duration: spec.limitRules[0].interval`, "10m"}},
		"no interval":      {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "" }, []string{"spec.limitRules[0].interval"}},
		"a short interval": {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "9s" }, []string{"spec.limitRules[0].interval", "between 10s and 30d"}},
		"a long interval":  {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "31d" }, []string{"spec.limitRules[0].interval"}},
		"a negative limit": {func(f *PodDeletionFlowControl) { f.Spec.LimitRules[0].Limit = -1 }, []string{"spec.limitRules[0].limit", "0 denies all"}},
		"the second rule is wrong": {func(f *PodDeletionFlowControl) { f.Spec.LimitRules = append(f.Spec.LimitRules, rule("1x", 1)) },
			[]string{"spec.limitRules[1].interval"}},
		"two wrong rules": {func(f *PodDeletionFlowControl) { f.Spec.LimitRules = []LimitRule{rule("1x", 1), rule("1h", -1)} },
			[]string{"spec.limitRules[0].interval", "spec.limitRules[1].limit"}},
		"the same interval twice": {func(f *PodDeletionFlowControl) { f.Spec.LimitRules = append(f.Spec.LimitRules, rule("600s", 1)) },
			[]string{"600s is the interval of limitRules[0] too: spec.limitRules[1].interval"}},
		"a white list that selects all": {func(f *PodDeletionFlowControl) { f.Spec.WhiteListSelector = &metav1.LabelSelector{} },
			[]string{"nothing would be counted: spec.whiteListSelector", "shadow: true"}},
		"a white list": {func(f *PodDeletionFlowControl) {
			f.Spec.WhiteListSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "batch"}}
		}, nil},
		"a white list without values": {func(f *PodDeletionFlowControl) {
			f.Spec.WhiteListSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn}}}
		}, []string{"spec.whiteListSelector.matchExpressions[0].values"}},
		"an unknown operator": {func(f *PodDeletionFlowControl) {
			f.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Is"}}}
		}, []string{"spec.namespaceSelector.matchExpressions[0].operator"}},
		"all namespaces": {func(f *PodDeletionFlowControl) { f.Spec.NamespaceSelector = &metav1.LabelSelector{} }, nil},
		"closed at a time": {func(f *PodDeletionFlowControl) {
			f.Annotations = map[string]string{ClosedAnnotation: "2026-01-02T03:04:05Z"}
		}, nil},
		"closed at an invalid time": {func(f *PodDeletionFlowControl) { f.Annotations = map[string]string{ClosedAnnotation: "now"} },
			[]string{ClosedAnnotation, "date -u"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &PodDeletionFlowControl{Spec: PodDeletionFlowControlSpec{LimitRules: []LimitRule{rule("10m", 100)}}}
			tc.change(f)
			err := f.Validate(t.Context())
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
