package releaseindex

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// failedLate returns a release that succeeded, was replaced by a newer one, and then
// got a late fail.
func failedLate(d *appsv1.Deployment, attempt int64) *v1alpha1.ChangeWorkload {
	c := builder.ChangeWorkload(d, attempt, v1alpha1.ReleaseFailed)
	c.GetConditionSet().Manage(c.GetStatus()).MarkFalse(apis.ConditionSucceeded, v1alpha1.ReasonCheckFailed, "5xx above 1 %%")
	return c
}

func TestASavedTemplateShowsThatAVersionSucceeded(t *testing.T) {
	d := builder.StoredDeployment()
	w := builder.Workload(t, d)
	version := builder.Version(d)
	template, err := json.Marshal(d.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		stored *v1alpha1.ChangeWorkload
		want   bool
	}{
		"when its template is kept":                       {want: true},
		"when it is released again and not judged yet":    {stored: builder.ChangeWorkload(d, 4, v1alpha1.ReleaseRunning), want: true},
		"not when it failed since":                        {stored: builder.ChangeWorkload(d, 4, v1alpha1.ReleaseSuspend)},
		"not when it failed after it was replaced":        {stored: failedLate(d, 4)},
		"not when it was that of an earlier workload":     {change: func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "earlier" }},
		"not when another version has the shortened name": {change: func(r *appsv1.ControllerRevision) { r.Annotations[v1alpha1.VersionKey] = "other" }},
		"not when somebody else's revision has that name": {change: func(r *appsv1.ControllerRevision) { r.Labels = nil }},
		"not when its template is that of another version": {change: func(r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(`{"spec":{"template":{"spec":{}}}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := savedtemplate.Build(w, v1alpha1.Release{Version: version, Attempt: 1}, template)
			if err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				tc.change(r)
			}
			h, _ := newHistory(t, nil, tc.stored)
			h.Revisions = kubefake.NewClientset(r).AppsV1()
			got, err := h.Succeeded(t.Context(), w, version)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
