package cli

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The annotations of the release before stay on the workload, and its ChangeWorkload passed.
func TestStatusPassesNoTemplateThatWasNotJudged(t *testing.T) {
	first := at(1, "busybox:1")
	missed := at(1, "busybox:1", builder.Image("busybox:2"))
	defaulted := at(1, "busybox:1", func(d *appsv1.Deployment) { d.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst })
	computed := at(1, "busybox:1", ofWebhook)
	createdAt := func(d *appsv1.Deployment, sinceSuccess time.Duration) *appsv1.Deployment {
		d = d.DeepCopy()
		d.CreationTimestamp = metav1.NewTime(succeededAt.Add(sinceSuccess))
		return d
	}
	for name, tc := range map[string]struct {
		namespace    *corev1.Namespace
		live, passed *appsv1.Deployment
		replicaSets  []*appsv1.Deployment // they have the templates and annotations of these
		want         diagnosis.State
	}{
		"a release that passed":                                    {optedIn, first, first, []*appsv1.Deployment{first}, diagnosis.StatePassed},
		"a template that the webhook did not see":                  {optedIn, missed, first, []*appsv1.Deployment{first, missed}, diagnosis.StateRunning},
		"a template that the webhook did not see, before it runs":  {optedIn, missed, first, []*appsv1.Deployment{first}, diagnosis.StateRunning},
		"a template that the webhook did not see, history is gone": {optedIn, missed, first, []*appsv1.Deployment{createdAt(missed, time.Hour)}, diagnosis.StateRunning},
		"a namespace that is not opted in any more":                {namespace(nil), missed, first, []*appsv1.Deployment{first, missed}, diagnosis.StateNotJudged},
		"a version that the plugin computes otherwise":             {optedIn, computed, computed, []*appsv1.Deployment{first, computed}, diagnosis.StatePassed},
		"a new default of Kubernetes":                              {optedIn, defaulted, first, []*appsv1.Deployment{createdAt(defaulted, -time.Minute)}, diagnosis.StatePassed},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, tc.namespace, tc.live, tc.passed)
			c.addReplicaSets(t, tc.replicaSets...)
			answer, err := (&app{}).awaitRelease(t.Context(), c, "deployment/sleep", 0)
			if err != nil || answer.State != tc.want {
				t.Errorf("got %+v, %v, want %s", answer, err, tc.want)
			}
			if passed := exitOf(answer, 0, "") == nil; passed != (tc.want == diagnosis.StatePassed) {
				t.Errorf("exit code 0 is %t for %s", passed, answer.State)
			}
		})
	}
}

func TestARollbackLeavesTheLiveTemplate(t *testing.T) {
	first, second := at(1, "busybox:1"), at(2, "busybox:2")
	missed := at(2, "busybox:2", builder.Image("busybox:3"))
	for name, tc := range map[string]struct {
		live     *appsv1.Deployment
		to, want string
	}{
		"from the current release":                {second, "", "busybox:1"},
		"from a template that the webhook missed": {missed, "", "busybox:2"},
		"to the version before, which passed":     {missed, builder.Version(second), "busybox:2"},
		"from a former template, applied again":   {at(2, "busybox:2", builder.Image("busybox:1")), "", "busybox:2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, tc.live, first, second)
			c.addReplicaSets(t, first, second, tc.live)
			target, err := c.workload(t.Context(), "deployment/sleep")
			if err != nil {
				t.Fatal(err)
			}
			streams := genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}
			if err := (&app{IOStreams: streams}).rollback(t.Context(), c, target, tc.to); err != nil {
				t.Fatal(err)
			}
			if target, err = c.workload(t.Context(), "deployment/sleep"); err != nil {
				t.Fatal(err)
			}
			after, err := workload.FromUnstructured(target.kind(), target.object)
			if err != nil || after.Template.Spec.Containers[0].Image != tc.want {
				t.Errorf("rolled back to %s, %v, want %s", after.Template.Spec.Containers[0].Image, err, tc.want)
			}
		})
	}
}

// A version may fail its check after it succeeded, and its saved template is deleted only then.
func TestARollbackSelectsNoVersionThatFailedSince(t *testing.T) {
	first, second, third := at(1, "busybox:1"), at(2, "busybox:2"), at(3, "busybox:3")
	c := cluster(t, optedIn, third, first, second, third)
	name := v1alpha1.ChangeWorkloadName("sleep", builder.Version(second))
	release, err := c.breakwater.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	release.Status.Phase = v1alpha1.ReleaseSuspend
	if _, err := c.breakwater.AppV1alpha1().ChangeWorkloads("default").UpdateStatus(t.Context(), release, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	target, err := c.workload(t.Context(), "deployment/sleep")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}}
	if err := a.rollback(t.Context(), c, target, builder.Version(second)); err == nil || !strings.Contains(err.Error(), "failed since it succeeded") {
		t.Errorf("error is %v", err)
	}
	if err := a.rollback(t.Context(), c, target, ""); err != nil {
		t.Fatal(err)
	}
	if target, err = c.workload(t.Context(), "deployment/sleep"); err != nil {
		t.Fatal(err)
	}
	after, err := workload.FromUnstructured(target.kind(), target.object)
	if err != nil || after.Template.Spec.Containers[0].Image != "busybox:1" {
		t.Errorf("rolled back to %s, %v, want busybox:1", after.Template.Spec.Containers[0].Image, err)
	}
}

// The current version failed after it had succeeded, and the ChangeWorkload of the version before was deleted.
func TestAnExplanationOfASuspensionNamesASavedVersion(t *testing.T) {
	first, second := at(1, "busybox:1"), at(2, "busybox:2")
	second.Labels[v1alpha1.SuspendLabel] = "1700000000"
	c := cluster(t, optedIn, second, first)
	name := v1alpha1.ChangeWorkloadName("sleep", builder.Version(first))
	if err := c.breakwater.AppV1alpha1().ChangeWorkloads("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e, err := c.explain(t.Context(), "deployment/sleep")
	if err != nil {
		t.Fatal(err)
	}
	want := "kubectl breakwater rollback deployment/sleep -n default --to " + builder.Version(first)
	if !slices.ContainsFunc(e.WaysOut, func(w diagnosis.WayOut) bool { return w.Command == want }) {
		t.Errorf("%q is not in %+v", want, e.WaysOut)
	}
}

// The API server sets no defaults in a ControllerRevision.
func TestATemplateOfAStatefulSetIsMissedIfTwoRevisionsHaveItsVersion(t *testing.T) {
	first, live := at(1, "busybox:1").Spec.Template, at(1, "busybox:2").Spec.Template
	set := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, Spec: appsv1.StatefulSetSpec{Template: live},
		ObjectMeta: metav1.ObjectMeta{Name: "sleep", Namespace: "default", UID: "sleep-uid", Generation: 2}}
	written, err := workload.Version(workload.StatefulSet, &first)
	if err != nil {
		t.Fatal(err)
	}
	set.Annotations = map[string]string{v1alpha1.VersionKey: written, v1alpha1.AttemptAnnotation: "1"}
	revision := func(number int64, version string, template corev1.PodTemplateSpec) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			Revision: number,
			ObjectMeta: metav1.ObjectMeta{Name: template.Spec.Containers[0].Image, Namespace: "default", Annotations: map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "1"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, workload.StatefulSet.GroupVersionKind)}},
			Data: runtime.RawExtension{Raw: builder.JSON(t, map[string]any{"spec": map[string]any{"template": template}})},
		}
	}
	for name, tc := range map[string]struct {
		observed  int64
		revisions []*appsv1.ControllerRevision
		want      bool
	}{
		"a new default of Kubernetes":                              {2, []*appsv1.ControllerRevision{revision(2, written, first), revision(1, "former", live)}, false},
		"a template that the webhook did not see":                  {2, []*appsv1.ControllerRevision{revision(1, written, first), revision(2, written, live)}, true},
		"a revision from before the opt-in":                        {2, []*appsv1.ControllerRevision{revision(1, "", first), revision(2, written, live)}, true},
		"a template that the controller did not see yet":           {1, []*appsv1.ControllerRevision{revision(1, written, first)}, true},
		"a template that the webhook did not see, history is gone": {2, []*appsv1.ControllerRevision{revision(2, written, live)}, true},
		"a former template, applied again":                         {2, []*appsv1.ControllerRevision{revision(2, written, first), revision(3, "former", live)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			set.Status.ObservedGeneration = tc.observed
			w := &workload.Workload{Kind: workload.StatefulSet, ObjectMeta: set.ObjectMeta}
			saved, err := savedtemplate.Build(w, v1alpha1.Release{Version: written, Attempt: 1}, builder.JSON(t, first))
			if err != nil {
				t.Fatal(err)
			}
			kube := kubefake.NewClientset(saved)
			for _, r := range tc.revisions {
				if err := kube.Tracker().Add(r); err != nil {
					t.Fatal(err)
				}
			}
			got, err := (&clients{kube: kube}).missed(t.Context(), target{object: unstructuredOf(t, set)}, nil)
			if err != nil || (got != "") != tc.want {
				t.Errorf("got %q, %v, want a missed template: %t", got, err, tc.want)
			}
		})
	}
}
