package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAWorkloadHasTheMetricCheckThatSelectsItMostClosely(t *testing.T) {
	check := func(name string, labels map[string]string) *MetricCheck {
		c := &MetricCheck{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if labels != nil {
			c.Spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		return c
	}
	web, db := map[string]string{"app": "web"}, map[string]string{"app": "db"}
	deleted := check("a", web)
	deleted.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		all       []*MetricCheck
		byDefault *MetricCheck
		want      string
	}{
		"none":                                  {},
		"the default of the cluster":            {byDefault: check("default", nil), want: "default"},
		"one that selects all":                  {all: []*MetricCheck{check("all", nil)}, byDefault: check("default", nil), want: "all"},
		"one with an empty selector":            {all: []*MetricCheck{check("all", map[string]string{})}, want: "all"},
		"one that selects it":                   {all: []*MetricCheck{check("all", nil), check("web", web)}, want: "web"},
		"one that selects others":               {all: []*MetricCheck{check("db", db)}, byDefault: check("default", nil), want: "default"},
		"several that select it, first by name": {all: []*MetricCheck{check("web-2", web), check("web-1", web)}, want: "web-1"},
		"one that is being deleted":             {all: []*MetricCheck{deleted, check("b", web)}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := Select(tc.all, tc.byDefault, web); c != nil {
				got = c.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
