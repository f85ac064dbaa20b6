package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestARollbackSelectsASavedVersion(t *testing.T) {
	saved := func(versions ...string) (all []savedtemplate.Saved) {
		for _, v := range versions {
			all = append(all, savedtemplate.Saved{Release: v1alpha1.Release{Version: v}})
		}
		return all
	}
	for name, tc := range map[string]struct {
		all      []savedtemplate.Saved
		to, want string
		err      string
		failed   string // it succeeded, and failed since
	}{
		"the newest other version":               {saved("now", "b", "a"), "", "b", "", ""},
		"a version by its beginning":             {saved("now", "beta", "alpha"), "al", "alpha", "", ""},
		"a version that is not saved":            {saved("now", "b"), "c", "", "is not a saved version: use one of b", ""},
		"the current version":                    {saved("now", "b"), "now", "", "--to now is the current version: use one of b", ""},
		"a beginning of several versions":        {saved("ab", "ac", "b"), "a", "", "is a prefix of several versions (ab, ac)", ""},
		"nothing is saved":                       {saved("now"), "", "", "no other version has succeeded", ""},
		"not a version that failed since":        {saved("now", "v2", "v1"), "", "v1", "", "v2"},
		"a version that failed since":            {saved("now", "v2", "v1"), "v2", "", "--to v2 is a version that failed since it succeeded: use one of v1", "v2"},
		"a beginning of one that failed, too":    {saved("now", "v2", "v1"), "v", "", "is a prefix of several versions (v2, v1)", "v2"},
		"the other versions failed since":        {saved("now", "v2"), "", "", "the other versions failed since they succeeded: v2", "v2"},
		"a version that is not saved, of failed": {saved("now", "v2"), "v3", "", "the other versions failed since they succeeded: v2", "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selectTemplate(tc.all, "now", tc.to, func(v string) bool { return v == tc.failed })
			if got.Release.Version != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v, want %q, %q", got.Release.Version, err, tc.want, tc.err)
			}
		})
	}
}

func TestARollbackByThePluginKeepsTheScaleOfAKnativeService(t *testing.T) {
	const saved, live, want = `{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"10"}},"spec":{"containers":[]}}`,
		`{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"100"}},"spec":{}}`, `{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"100"}},"spec":{"containers":[]}}`
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(`{"apiVersion":"serving.knative.dev/v1","kind":"Service","spec":{"template":` + live + `}}`)); err != nil {
		t.Fatal(err)
	}
	patch, err := rollbackPatch(o, workload.KnativeService, savedtemplate.Saved{Template: json.RawMessage(saved)})
	if err != nil || !strings.Contains(string(patch), `"path":"/spec/template","value":`+want+`}`) {
		t.Errorf("patch %s, %v, want the template %s", patch, err, want)
	}
}

func TestARepairOfImagesKeepsTheOtherContainersAndFields(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"initContainers": []any{map[string]any{"name": "init", "image": "init:1"}},
		"containers":     []any{map[string]any{"name": "app", "image": "app:1", "unknownField": "kept"}, map[string]any{"name": "sidecar", "image": "sidecar:1"}},
	}}}}}
	for name, tc := range map[string]struct {
		images []string
		want   string
		err    string
	}{
		"one container": {[]string{"app=app:2"}, `{"containers":[{"image":"app:2","name":"app","unknownField":"kept"},{"image":"sidecar:1","name":"sidecar"}]}`, ""},
		"several containers": {[]string{"app=app:2", "sidecar=sidecar:2", "init=init:2"},
			`{"containers":[{"image":"app:2","name":"app","unknownField":"kept"},{"image":"sidecar:2","name":"sidecar"}],"initContainers":[{"image":"init:2","name":"init"}]}`, ""},
		"an unknown container":                   {[]string{"other=x"}, "", "has no container other, only app, sidecar, init"},
		"an unknown container after a known one": {[]string{"app=app:2", "other=x"}, "", "has no container other, only app, sidecar, init"},
		"no container":                           {[]string{"app:2"}, "", "write CONTAINER=IMAGE"},
	} {
		t.Run(name, func(t *testing.T) {
			change, err := withImages(o, tc.images)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error is %v, want %q", err, tc.err)
				}
				return
			}
			spec, _, _ := unstructured.NestedMap(change, "spec", "template", "spec")
			got, marshalErr := json.Marshal(spec)
			if err != nil || marshalErr != nil || string(got) != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestOnlyADecisionOfTheAPIServerIsADenial(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err     error
		allowed bool
		outcome string
	}{
		"allowed":                 {nil, true, ""},
		"denied by a webhook":     {apierrors.NewForbidden(pods, "a", errors.New("denied")), false, "would be denied"},
		"an eviction that waits":  {apierrors.NewTooManyRequests("budget", 0), false, "would be denied"},
		"an invalid manifest":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false, "would be rejected (422)"},
		"a conflict":              {apierrors.NewConflict(pods, "a", errors.New("changed")), false, "would be rejected (409)"},
		"an object that is gone":  {apierrors.NewNotFound(pods, "a"), false, ""},
		"a failed webhook call":   {apierrors.NewInternalError(errors.New("failed calling webhook")), false, ""},
		"a busy server":           {apierrors.NewServiceUnavailable("later"), false, ""},
		"a timeout":               {apierrors.NewTimeoutError("late", 1), false, ""},
		"a limit of requests":     {apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "POST", pods, "a", "Too many requests", 0, true), false, ""},
		"an unreachable server":   {errors.New("connection refused"), false, ""},
		"a token that is expired": {apierrors.NewUnauthorized("no"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := simulatedOf("pod/a", "shop", tc.err, nil)
			outcome := ""
			if err == nil && !s.Allowed {
				outcome = s.outcomeText()
			}
			if s.Allowed != tc.allowed || outcome != tc.outcome || (err != nil) != (!tc.allowed && tc.outcome == "") {
				t.Errorf("got %+v %q, %v", s, outcome, err)
			}
		})
	}
}

func TestASimulatedDrainLeavesOutPodsThatNeedNoEviction(t *testing.T) {
	owned := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"a pod of a ReplicaSet": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned("ReplicaSet")}}, true},
		"a pod of a DaemonSet":  {corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned("DaemonSet")}}, false},
		"a static pod":          {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, false},
		"a terminating pod":     {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}, false},
		"a completed pod":       {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drained(&tc.pod); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// Elsewhere the words are pass and fail.
func TestTheCommandsOfVerdictsHaveTheWordsOfVerdicts(t *testing.T) {
	for alias, want := range map[string]string{"pass": "approve", "fail": "reject"} {
		found, _, err := New("", genericiooptions.IOStreams{}).Find([]string{alias, "deployment/web"})
		if err != nil || found.Name() != want {
			t.Errorf("%s: found %s, error %v, want command %s", alias, found.Name(), err, want)
		}
	}
}

func TestStatusOfAWorkloadWithoutAReleaseNamesNoRelease(t *testing.T) {
	answer := answerOf(v1alpha1.Release{}, diagnosis.Input{Kind: "deployment", Namespace: "shop", Name: "web", OptedIn: true})
	if got, want := lineOf(answer, diagnosis.Plain), "deployment/web is NotJudged (NoRelease): the workload has no release: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var exit exitError
	if err := exitOf(answer, 0, ""); !errors.As(err, &exit) || exit.code != exitNo || !strings.Contains(exit.message, "Breakwater does not judge deployment/web") {
		t.Errorf("got %+v, want code 1 without a release that did not pass", exit)
	}
}
