package savedtemplate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var template = json.RawMessage(`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c"}],"fieldOfTomorrow":1}}`)

func build(t *testing.T, version string, attempt int64) appsv1.ControllerRevision {
	t.Helper()
	w := &workload.Workload{Kind: workload.StatefulSet, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}
	r, err := savedtemplate.Build(w, v1alpha1.Release{Version: version, Attempt: attempt}, template)
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

func TestWhatIsKeptReadsAsItWasWritten(t *testing.T) {
	r := build(t, "a", 3)
	k, ok := savedtemplate.Read(&r, "u1")
	if !ok {
		t.Fatal("not read")
	}
	want := savedtemplate.Saved{Name: "web--x--a", Release: v1alpha1.Release{Version: "a", Attempt: 3}, Template: template}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotKeptOfTheWorkloadIsNotRead(t *testing.T) {
	for name, change := range map[string]func(*appsv1.ControllerRevision){
		"of an earlier workload of the name":      func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "u0" },
		"that somebody labelled":                  func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
		"of the workload's own controller":        func(r *appsv1.ControllerRevision) { r.Labels = nil },
		"without its release":                     func(r *appsv1.ControllerRevision) { r.Annotations = nil },
		"without a template":                      func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"spec":{}}`) },
		"that is being deleted":                   func(r *appsv1.ControllerRevision) { r.DeletionTimestamp = &metav1.Time{} },
		"whose data somebody has written as text": func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`"text"`) },
	} {
		t.Run(name, func(t *testing.T) {
			r := build(t, "a", 3)
			change(&r)
			if k, ok := savedtemplate.Read(&r, "u1"); ok {
				t.Errorf("read as %+v", k)
			}
		})
	}
}

// The built-in controllers look at ControllerRevisions that match their
// workload's selector, and at those that they control.
func TestNoBuiltInControllerCountsWhatIsKept(t *testing.T) {
	r := build(t, "a", 3)
	if owner := metav1.GetControllerOf(&r); owner != nil {
		t.Errorf("it has a controller: %+v", owner)
	}
	if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != "u1" {
		t.Errorf("the garbage collector would not take it: %+v", r.OwnerReferences)
	}
	for name, tc := range map[string]struct {
		selector metav1.LabelSelector
		selected bool
	}{
		"a label":              {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, false},
		"our well-known label": {metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.DeploymentNameLabel: "web"}}, false},
		"one of some values": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}, false},
		"nothing but an exclusion": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := metav1.LabelSelectorAsSelector(&tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(labels.Set(r.Labels)); got != tc.selected {
				t.Errorf("it matches: %v", got)
			}
			if got := savedtemplate.SelectorMatches(&tc.selector, "u1"); got != tc.selected {
				t.Errorf("Selected says %v", got)
			}
		})
	}
}

func TestTheNewestIsWhereToGoBackTo(t *testing.T) {
	kept := savedtemplate.ReadAll([]appsv1.ControllerRevision{build(t, "a", 1), build(t, "c", 7), build(t, "b", 4)}, "u1")
	for name, tc := range map[string]struct {
		current, bad, want string
	}{
		"the latest attempt":                {"d", "", "c"},
		"but not where the workload is":     {"c", "", "b"},
		"and not what has failed since":     {"d", "c", "b"},
		"nothing when nothing good is left": {"a", "any", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, ok := savedtemplate.Newest(kept, tc.current, func(v string) bool { return v == tc.bad || tc.bad == "any" })
			if ok != (tc.want != "") || k.Release.Version != tc.want {
				t.Errorf("got %q, %v", k.Release.Version, ok)
			}
		})
	}
	if _, ok := savedtemplate.Find(kept, "d"); ok {
		t.Error("found what is not kept")
	}
}

func TestTheOldestAreTooMuch(t *testing.T) {
	kept := savedtemplate.ReadAll([]appsv1.ControllerRevision{build(t, "a", 1), build(t, "c", 7), build(t, "b", 4)}, "u1")
	got := savedtemplate.OverLimit(kept, 1)
	if len(got) != 2 || got[0].Release.Version != "b" || got[1].Release.Version != "a" {
		t.Errorf("got %+v", got)
	}
	if got := savedtemplate.OverLimit(kept, 3); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}
