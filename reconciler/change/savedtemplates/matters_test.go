package savedtemplates

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestUpdatesThatMatter(t *testing.T) {
	suspended := func(change func(c *v1alpha1.ChangeWorkload)) *v1alpha1.ChangeWorkload {
		c := &v1alpha1.ChangeWorkload{
			ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "2"},
			Spec:       v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: 1},
		}
		c.Status.Phase, c.Status.Counts.Pods = v1alpha1.ReleaseSuspend, 3
		c.Status.SetConditions(apis.Conditions{{Type: apis.ConditionSucceeded, Reason: v1alpha1.ReasonCheckFailed}})
		change(c)
		return c
	}
	before := suspended(func(c *v1alpha1.ChangeWorkload) { c.ResourceVersion = "1" })
	for name, tc := range map[string]struct {
		after any
		want  bool
	}{
		"its pods are counted again":      {suspended(func(c *v1alpha1.ChangeWorkload) { c.Status.Counts.Pods = 2 }), false},
		"a person labels it":              {suspended(func(c *v1alpha1.ChangeWorkload) { c.Labels = map[string]string{"a": "b"} }), false},
		"it has no pods any more":         {suspended(func(c *v1alpha1.ChangeWorkload) { c.Status.Counts.Pods = 0 }), true},
		"it succeeds":                     {suspended(func(c *v1alpha1.ChangeWorkload) { c.Status.Phase = v1alpha1.ReleaseSuccess }), true},
		"its template was saved":          {suspended(func(c *v1alpha1.ChangeWorkload) { c.Status.SavedTemplateName = "web--x--v" }), true},
		"it is suspended for another why": {suspended(func(c *v1alpha1.ChangeWorkload) { c.Status.Conditions[0].Reason = v1alpha1.ReasonShadow }), true},
		"it is being deleted":             {suspended(func(c *v1alpha1.ChangeWorkload) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), true},
		"it is made anew":                 {suspended(func(c *v1alpha1.ChangeWorkload) { c.Spec.Attempt = 2 }), true},
		"a resync":                        {before, true},
		"something else":                  {"a tombstone", true},
	} {
		if got := matters(before, tc.after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
