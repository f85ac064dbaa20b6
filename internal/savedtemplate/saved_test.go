package savedtemplate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var template = json.RawMessage(`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c"}],"fieldOfTomorrow":1}}`)

var web = &workload.Workload{Kind: workload.StatefulSet, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}

func build(t *testing.T, version string, attempt int64) appsv1.ControllerRevision {
	t.Helper()
	r, err := savedtemplate.Build(web, v1alpha1.Release{Version: version, Attempt: attempt}, template)
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

// list returns the saved templates of three versions, as List reads them.
func list(t *testing.T) []savedtemplate.Saved {
	t.Helper()
	a, b, c := build(t, "a", 1), build(t, "b", 4), build(t, "c", 7)
	saved, err := savedtemplate.List(t.Context(), kubefake.NewClientset(&a, &b, &c), web)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestASavedTemplateIsReadAsItWasWritten(t *testing.T) {
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

func TestOtherControllerRevisionsAreNotSavedTemplates(t *testing.T) {
	for name, change := range map[string]func(*appsv1.ControllerRevision){
		"of an earlier workload with the same name": func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "u0" },
		"with the label but without the owner":      func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
		"of the workload's own controller":          func(r *appsv1.ControllerRevision) { r.Labels = nil },
		"without a release":                         func(r *appsv1.ControllerRevision) { r.Annotations = nil },
		"without a template":                        func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"spec":{}}`) },
		"that is terminating":                       func(r *appsv1.ControllerRevision) { r.DeletionTimestamp = &metav1.Time{} },
		"with data of another format":               func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`"text"`) },
	} {
		t.Run(name, func(t *testing.T) {
			r := build(t, "a", 3)
			change(&r)
			if k, ok := savedtemplate.Read(&r, "u1"); ok {
				t.Errorf("Read = %+v, want false", k)
			}
		})
	}
}

// The built-in controllers use ControllerRevisions that match their workload's
// selector or that they control.
func TestBuiltInControllersIgnoreSavedTemplates(t *testing.T) {
	r := build(t, "a", 3)
	if owner := metav1.GetControllerOf(&r); owner != nil {
		t.Errorf("controller %+v, want none", owner)
	}
	if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != "u1" {
		t.Errorf("owners %+v, want the workload, for garbage collection", r.OwnerReferences)
	}
	for name, tc := range map[string]struct {
		selector metav1.LabelSelector
		selected bool
	}{
		"a label":              {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, false},
		"our well-known label": {metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.DeploymentNameLabel: "web"}}, false},
		"a set of values": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}, false},
		"only an exclusion": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := metav1.LabelSelectorAsSelector(&tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(labels.Set(r.Labels)); got != tc.selected {
				t.Errorf("Matches = %v, want %v", got, tc.selected)
			}
			if got := savedtemplate.SelectorMatches(&tc.selector, "u1"); got != tc.selected {
				t.Errorf("SelectorMatches = %v, want %v", got, tc.selected)
			}
		})
	}
}

func TestTheTargetIsTheNewestGoodVersion(t *testing.T) {
	saved := list(t)
	for name, tc := range map[string]struct {
		current, bad, want string
	}{
		"the latest attempt":              {"d", "", "c"},
		"not the current version":         {"c", "", "b"},
		"not a version that failed since": {"d", "c", "b"},
		"none if all versions are bad":    {"a", "any", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, ok := savedtemplate.Newest(saved, tc.current, func(v string) bool { return v == tc.bad || tc.bad == "any" })
			if ok != (tc.want != "") || k.Release.Version != tc.want {
				t.Errorf("got %q, %v", k.Release.Version, ok)
			}
		})
	}
	if _, ok := savedtemplate.Find(saved, "d"); ok {
		t.Error("found a version that is not saved")
	}
}

func TestTheOldestTemplatesExceedTheLimit(t *testing.T) {
	saved := list(t)
	got := savedtemplate.OverLimit(saved, 1)
	if len(got) != 2 || got[0].Release.Version != "b" || got[1].Release.Version != "a" {
		t.Errorf("got %+v", got)
	}
	if got := savedtemplate.OverLimit(saved, 3); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}
