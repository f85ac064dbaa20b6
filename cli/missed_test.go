package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// at is Deployment default/sleep with an image and the release that the webhook writes for it.
func at(attempt int64, image string, more ...builder.Option) *appsv1.Deployment {
	return builder.StoredDeployment(append([]builder.Option{builder.Image(image), builder.Versioned(attempt)}, more...)...)
}

// cluster has the Deployment, and a ChangeWorkload and the saved template of each release that passed.
func cluster(t *testing.T, namespace *corev1.Namespace, live *appsv1.Deployment, passed ...*appsv1.Deployment) *clients {
	t.Helper()
	kube, breakwater := kubefake.NewClientset(namespace), fake.NewSimpleClientset()
	for _, d := range passed {
		release, _ := v1alpha1.ReleaseOf(d.Annotations)
		saved, err := savedtemplate.Build(builder.Workload(t, d), release, builder.JSON(t, d.Spec.Template))
		if err != nil {
			t.Fatal(err)
		}
		c := builder.ChangeWorkload(d, release.Attempt, v1alpha1.ReleaseSuccess)
		c.Spec.Reversion = release.Version
		for _, err := range []error{kube.Tracker().Add(saved), breakwater.Tracker().Add(c)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(builder.JSON(t, live), &o.Object); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	mapper.Add(workload.Deployment.GroupVersionKind, meta.RESTScopeNamespace)
	return &clients{kube: kube, breakwater: breakwater, mapper: mapper, namespace: "default",
		dynamic: dynamicfake.NewSimpleDynamicClient(clientscheme.Scheme, o)}
}

func namespace(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: labels}}
}

var (
	optedIn = namespace(map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled})
	// ofWebhook sets the version that the webhook computes from a template with fields that the plugin does not have.
	ofWebhook = builder.Annotation(v1alpha1.VersionKey, strings.Repeat("f", 32))
)

// The annotations of the release before stay on the workload, and its ChangeWorkload passed.
func TestStatusPassesNoTemplateThatWasNotJudged(t *testing.T) {
	first := at(1, "busybox:1")
	for name, tc := range map[string]struct {
		c    *clients
		want diagnosis.State
	}{
		"a release that passed":                        {cluster(t, optedIn, first, first), diagnosis.StatePassed},
		"a template that the webhook did not see":      {cluster(t, optedIn, at(1, "busybox:1", builder.Image("busybox:2")), first), diagnosis.StateRunning},
		"a namespace that is not opted in any more":    {cluster(t, namespace(nil), at(1, "busybox:1", builder.Image("busybox:2")), first), diagnosis.StateNotJudged},
		"a version that the plugin computes otherwise": {cluster(t, optedIn, at(1, "busybox:1", ofWebhook), at(1, "busybox:1", ofWebhook)), diagnosis.StatePassed},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := (&app{}).awaitRelease(t.Context(), tc.c, "deployment/sleep", 0)
			if err != nil || answer.State != tc.want {
				t.Errorf("got %+v, %v, want %s", answer, err, tc.want)
			}
			if passed := exitOf(answer, 0) == nil; passed != (tc.want == diagnosis.StatePassed) {
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
