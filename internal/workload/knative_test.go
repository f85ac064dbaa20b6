package workload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// knative is the template of a Knative Service with these annotations, as JSON fields.
func knative(annotations, more string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"web"},"annotations":{"a":"b"%s}},
		"spec":{"containerConcurrency":0,"timeoutSeconds":300,"containers":[{"name":"user-container","image":"a:1"}]%s}}`, annotations, more)
}

func release(version, attempt string) string {
	return fmt.Sprintf(`,%q:%q,%q:%q`, v1alpha1.VersionKey, version, v1alpha1.AttemptAnnotation, attempt)
}

func TestWhichChangesOfAKnativeTemplateAreReleases(t *testing.T) {
	before := knative("", "")
	for name, tc := range map[string]struct {
		after string
		want  bool
	}{
		"no change":                 {before, false},
		"an annotation that scales": {knative(`,"autoscaling.knative.dev/min-scale":"2"`, ""), false},
		"Breakwater's annotations":  {knative(release("v", "2"), ""), false},
		"the name of the Revision":  {strings.Replace(before, `{"labels"`, `{"name":"web-2","labels"`, 1), false},
		"another annotation":        {knative(`,"c":"d"`, ""), true},
		"a label":                   {strings.Replace(before, `"app":"web"`, `"app":"shop"`, 1), true},
		"an image":                  {strings.Replace(before, "a:1", "a:2", 1), true},
		"a setting of the Revision": {strings.Replace(before, `"containerConcurrency":0`, `"containerConcurrency":1`, 1), true},
		"a field of pods":           {knative("", `,"serviceAccountName":"s"`), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := knativeVersion(t, before) != knativeVersion(t, tc.after); got != tc.want {
				t.Errorf("another version: %t, want %t", got, tc.want)
			}
			var trimmed [2]json.RawMessage
			for i, raw := range []string{before, tc.after} {
				var err error
				if trimmed[i], err = workload.KnativeService.ReleaseTemplate(json.RawMessage(raw)); err != nil {
					t.Fatal(err)
				}
			}
			if same, err := workload.SameTemplate(trimmed[0], trimmed[1]); err != nil || same == tc.want {
				t.Errorf("a release: %t, want %t; %v", !same, tc.want, err)
			}
		})
	}
}

func TestTheTemplateOfAnotherKindIsNotTrimmed(t *testing.T) {
	raw := json.RawMessage(knative(release("v", "1"), ""))
	for _, kind := range []workload.Kind{workload.Deployment, workload.StatefulSet} {
		if got, err := kind.ReleaseTemplate(raw); err != nil || string(got) != string(raw) {
			t.Errorf("%s: %s, %v", kind.Kind, got, err)
		}
	}
}

func TestASavedKnativeTemplateKeepsItsScaling(t *testing.T) {
	raw := `{"metadata":{"name":"web-1","annotations":{"autoscaling.knative.dev/min-scale":"2"` + release("v", "1") + `}},"spec":{}}`
	got, err := workload.KnativeService.SavedTemplate(json.RawMessage(raw))
	if want := `{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"2"}},"spec":{}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestARollbackKeepsTheScalingOfAKnativeService(t *testing.T) {
	const low, high, window = `,"autoscaling.knative.dev/max-scale":"10"`, `,"autoscaling.knative.dev/max-scale":"100"`, `,"autoscaling.knative.dev/window":"10s"`
	for name, tc := range map[string]struct{ saved, current, want string }{
		"a changed value":        {knative(low, ""), knative(high, `,"serviceAccountName":"s"`), knative(high, "")},
		"a further annotation":   {knative(low, ""), knative(low+window, ""), knative(low+window, "")},
		"a removed annotation":   {knative(low+window, ""), knative(window, ""), knative(window, "")},
		"no annotation any more": {knative(low, ""), `{"spec":{}}`, knative("", "")},
		"other annotations":      {knative(low, ""), knative(low+`,"c":"d"`+release("v", "2"), ""), knative(low, "")},
		"none was saved":         {`{"spec":{}}`, knative(high, ""), `{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"100"}},"spec":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := workload.KnativeService.WithScalingOf(json.RawMessage(tc.saved), json.RawMessage(tc.current))
			if err != nil {
				t.Fatal(err)
			}
			if same, err := workload.SameTemplate(got, json.RawMessage(tc.want)); err != nil || !same {
				t.Errorf("%s, %v, want %s", got, err, tc.want)
			}
			if knativeVersion(t, string(got)) != knativeVersion(t, tc.saved) {
				t.Error("it is another version")
			}
			if got, err := workload.Deployment.WithScalingOf(json.RawMessage(tc.saved), json.RawMessage(tc.current)); err != nil || string(got) != tc.saved {
				t.Errorf("of a Deployment: %s, %v", got, err)
			}
		})
	}
}

// See TestAnUpgradeKeepsVersions.
func TestAnUpgradeKeepsTheVersionsOfKnativeServices(t *testing.T) {
	if got, want := knativeVersion(t, knative("", "")), "7bca863558767e60f4615f2201fcd140"; got != want {
		t.Errorf("version %s, want %s", got, want)
	}
}

func knativeVersion(t *testing.T, template string) string {
	t.Helper()
	version, err := workload.Version(workload.KnativeService, &readKnative(t, template, "{}").Template)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func readKnative(t *testing.T, template, status string) *workload.Workload {
	t.Helper()
	w, err := workload.Read(workload.KnativeService, fmt.Appendf(nil,
		`{"metadata":{"name":"web","generation":2},"spec":{"template":%s},"status":%s}`, template, status))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestProgressOfAKnativeService(t *testing.T) {
	const ready = `"conditions":[{"type":"RoutesReady","status":"True"},{"type":"Ready","status":"True"}]`
	for name, tc := range map[string]struct {
		status   string
		complete bool
	}{
		"no status":                  {`{}`, false},
		"the latest is Ready":        {`{"observedGeneration":2,"latestCreatedRevisionName":"b","latestReadyRevisionName":"b",` + ready + `}`, true},
		"of the former generation":   {`{"observedGeneration":1,"latestCreatedRevisionName":"b","latestReadyRevisionName":"b",` + ready + `}`, false},
		"the latest is not Ready":    {`{"observedGeneration":2,"latestCreatedRevisionName":"b","latestReadyRevisionName":"a",` + ready + `}`, false},
		"no Revision":                {`{"observedGeneration":2,` + ready + `}`, false},
		"the routes are not Ready":   {`{"observedGeneration":2,"latestCreatedRevisionName":"b","latestReadyRevisionName":"b","conditions":[{"type":"Ready","status":"Unknown"}]}`, false},
		"no condition":               {`{"observedGeneration":2,"latestCreatedRevisionName":"b","latestReadyRevisionName":"b"}`, false},
		"conditions of another type": {`{"observedGeneration":2,"latestCreatedRevisionName":"b","latestReadyRevisionName":"b","conditions":"x"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := readKnative(t, knative("", ""), tc.status)
			if w.Complete != tc.complete || w.InProgress == tc.complete || w.Replicas != 1 {
				t.Errorf("complete %t, in progress %t, replicas %d", w.Complete, w.InProgress, w.Replicas)
			}
		})
	}
}

// Serving keeps latestReadyRevisionName when that Revision stops being Ready.
func TestTheReadyRevisionOfAKnativeService(t *testing.T) {
	conditions := func(status string) string {
		return `"conditions":[{"type":"ConfigurationsReady","status":"` + status + `"},{"type":"RoutesReady","status":"False"}]`
	}
	for name, tc := range map[string]struct{ status, want, created string }{
		"no status":                       {`{}`, "", ""},
		"the latest is Ready":             {`{"latestCreatedRevisionName":"a","latestReadyRevisionName":"a",` + conditions("True") + `}`, "a", "a"},
		"it is not Ready any more":        {`{"latestCreatedRevisionName":"a","latestReadyRevisionName":"a",` + conditions("False") + `}`, "", "a"},
		"this is unknown":                 {`{"latestCreatedRevisionName":"a","latestReadyRevisionName":"a",` + conditions("Unknown") + `}`, "a", "a"},
		"the latest did not become Ready": {`{"latestCreatedRevisionName":"b","latestReadyRevisionName":"a",` + conditions("False") + `}`, "a", "b"},
		"the latest is not Ready yet":     {`{"latestCreatedRevisionName":"b","latestReadyRevisionName":"a",` + conditions("Unknown") + `}`, "a", "b"},
		"no condition":                    {`{"latestCreatedRevisionName":"a","latestReadyRevisionName":"a"}`, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := readKnative(t, knative("", ""), tc.status)
			if w.ReadyRevision != tc.want || w.LatestRevision != tc.created {
				t.Errorf("%q, and the latest is %q, want %q and %q", w.ReadyRevision, w.LatestRevision, tc.want, tc.created)
			}
		})
	}
}

func TestNoFieldOfAKnativeServiceStopsItsRollout(t *testing.T) {
	w := readKnative(t, knative("", ""), "{}")
	if w.PausedOrHeld() || w.Stopped() || w.Stop() != nil || w.Resume(nil) != nil || w.ManifestPauses() || w.ReplacesGradually {
		t.Errorf("paused %t, stop %v, resume %v", w.PausedOrHeld(), w.Stop(), w.Resume(nil))
	}
}

func TestTheReleaseOnTheTemplateIsWritten(t *testing.T) {
	const path = "/spec/template/metadata/annotations"
	version, attempt := workload.Pointer("spec", "template", "metadata", "annotations", v1alpha1.VersionKey),
		workload.Pointer("spec", "template", "metadata", "annotations", v1alpha1.AttemptAnnotation)
	both := []workload.Operation{{Op: "add", Path: version, Value: "v"}, {Op: "add", Path: attempt, Value: "1"}}
	parent := func(path string) workload.Operation {
		return workload.Operation{Op: "add", Path: path, Value: map[string]any{}}
	}
	for name, tc := range map[string]struct {
		template         string
		version, attempt string
		want             []workload.Operation
	}{
		"no metadata":     {`{"spec":{}}`, "v", "1", append([]workload.Operation{parent("/spec/template/metadata"), parent(path)}, both...)},
		"no annotations":  {`{"metadata":{"labels":{}}}`, "v", "1", append([]workload.Operation{parent(path)}, both...)},
		"no release":      {knative("", ""), "v", "1", both},
		"another attempt": {knative(release("v", "0"), ""), "v", "1", both[1:]},
		"the same":        {knative(release("v", "1"), ""), "v", "1", nil},
		"of a baseline":   {knative("", ""), "", "", nil},
		"planted":         {knative(release("v", "1"), ""), "", "", []workload.Operation{{Op: "remove", Path: version}, {Op: "remove", Path: attempt}}},
		"no template":     {`null`, "v", "1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readKnative(t, tc.template, "{}").WriteTemplateRelease(tc.version, tc.attempt)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichDeploymentsAreOfAKnativeService(t *testing.T) {
	owner := func(apiVersion, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web-00001", UID: "r", Controller: new(controller)}}
	}
	labels := map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "s"}
	revision := owner("serving.knative.dev/v1", "Revision", true)
	for name, tc := range map[string]struct {
		kind   workload.Kind
		labels map[string]string
		owners []metav1.OwnerReference
		want   bool
	}{
		"of a Revision of a Service": {workload.Deployment, labels, revision, true},
		"without an owner":           {workload.Deployment, labels, nil, false},
		"of another kind":            {workload.Deployment, labels, owner("serving.knative.dev/v1", "Service", true), false},
		"of another group":           {workload.Deployment, labels, owner("a.serving.knative.dev/v1", "Revision", true), false},
		"not the controller":         {workload.Deployment, labels, owner("serving.knative.dev/v1", "Revision", false), false},
		"without a Service":          {workload.Deployment, nil, revision, false},
		"without the Service's UID":  {workload.Deployment, map[string]string{"serving.knative.dev/service": "web"}, revision, false},
		"not a Deployment":           {workload.StatefulSet, labels, revision, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workload.Workload{Kind: tc.kind, ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, OwnerReferences: tc.owners}}
			if got := w.OfKnativeService(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
