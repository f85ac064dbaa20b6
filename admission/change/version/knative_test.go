package version

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// service is a Knative Service with an image, and with more annotations of its template.
func service(image string, annotations map[string]any) *unstructured.Unstructured {
	all := map[string]any{"a": "b"}
	maps.Copy(all, annotations)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "default", "uid": "u"},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": all},
			"spec":     map[string]any{"containers": []any{map[string]any{"image": image}}},
		}},
	}}
}

// defaulted sets the defaults of Serving's webhook.
func defaulted(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	spec["containerConcurrency"], spec["timeoutSeconds"] = int64(0), int64(300)
	spec["containers"].([]any)[0].(map[string]any)["name"] = "user-container"
	_ = unstructured.SetNestedMap(u.Object, spec, "spec", "template", "spec")
	return u
}

// admitKnative admits an update, or a creation if before is nil: the API server calls the webhook,
// that of Serving, and the webhook again.
func admitKnative(t *testing.T, before, after *unstructured.Unstructured, user string) *unstructured.Unstructured {
	t.Helper()
	return admitKnativeBy(t, newHandler(), before, after, user)
}

// admitKnativeBy is admitKnative with the settings of a handler.
func admitKnativeBy(t *testing.T, h *Handler, before, after *unstructured.Unstructured, user string) *unstructured.Unstructured {
	t.Helper()
	h.Kind = workload.KnativeService
	h.Namespaces = fake.NewSimpleClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).CoreV1()
	call := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		req := &admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: marshal(t, o)}, UserInfo: authenticationv1.UserInfo{Username: user},
		}
		if before != nil {
			req.Operation, req.OldObject.Raw = admissionv1.Update, marshal(t, before)
		}
		answer := h.Admit(t.Context(), req)
		patch, err := jsonpatch.DecodePatch(answer.Response.Patch)
		if len(answer.Response.Patch) == 0 {
			return o
		} else if err != nil {
			t.Fatal(err)
		}
		raw, err := patch.Apply(req.Object.Raw)
		if err != nil {
			t.Fatalf("apply %s: %v", answer.Response.Patch, err)
		}
		out := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := defaulted(call(after))
	if before != nil && string(marshal(t, first.Object["spec"])) != string(marshal(t, before.Object["spec"])) {
		_ = unstructured.SetNestedField(first.Object, user, "metadata", "annotations", "serving.knative.dev/lastModifier")
	}
	return call(first)
}

func marshal(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// attempts are the attempts on a Service and on its template, and whether both have the same version.
func attempts(u *unstructured.Unstructured) string {
	onTemplate, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
	a, b := u.GetAnnotations(), onTemplate
	same := a[v1alpha1.VersionKey] == b[v1alpha1.VersionKey] && a[v1alpha1.VersionKey] == u.GetLabels()[v1alpha1.VersionKey]
	return fmt.Sprintf("%s %s %t", a[v1alpha1.AttemptAnnotation], b[v1alpha1.AttemptAnnotation], same)
}

func TestTheReleaseOfAKnativeServiceIsOnItsTemplateToo(t *testing.T) {
	created := admitKnative(t, nil, service("a:1", nil), alice)
	baseline := admitKnative(t, defaulted(service("a:1", nil)), defaulted(service("a:1", nil)), v1alpha1.ControllerUser)
	edited := func(of *unstructured.Unstructured, annotation string) *unstructured.Unstructured {
		of = of.DeepCopy()
		_ = unstructured.SetNestedField(of.Object, "9", "spec", "template", "metadata", "annotations", annotation)
		return of
	}
	for name, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		want          string // attempts
		// revision: Serving creates a Revision.
		revision bool
	}{
		"created":                                  {nil, service("a:1", nil), "1 1 true", true},
		"created with a forged release":            {nil, edited(service("a:1", nil), v1alpha1.AttemptAnnotation), "1 1 true", true},
		"another image":                            {created, service("a:2", nil), "2 2 true", true},
		"replaced by the same manifest":            {created, service("a:1", nil), "1 1 true", false},
		"not changed":                              {created, created, "1 1 true", false},
		"scaled":                                   {created, service("a:1", map[string]any{"autoscaling.knative.dev/min-scale": "2"}), "1 1 true", true},
		"a forged attempt":                         {created, edited(created, v1alpha1.AttemptAnnotation), "1 1 true", false},
		"a baseline that is not changed":           {baseline, baseline, "0  false", false},
		"a baseline replaced by the same manifest": {baseline, service("a:1", nil), "0  false", false},
		"a baseline with a forged attempt":         {baseline, edited(baseline, v1alpha1.AttemptAnnotation), "0  false", false},
		"a baseline with another image":            {baseline, service("a:2", nil), "1 1 true", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := admitKnative(t, tc.before, tc.after, alice)
			if attempts(got) != tc.want {
				t.Errorf("attempts %q, want %q", attempts(got), tc.want)
			}
			if tc.before == nil {
				return
			}
			was, is := marshal(t, tc.before.Object["spec"]), marshal(t, got.Object["spec"])
			if changed := string(was) != string(is); changed != tc.revision {
				t.Errorf("spec changed: %t, want %t\n%s\n%s", changed, tc.revision, was, is)
			}
		})
	}
}

func TestAReleaseOfAKnativeServiceThatTheWebhookMissedIsReadmitted(t *testing.T) {
	missed := admitKnative(t, nil, service("a:1", nil), alice)
	image := []any{map[string]any{"image": "a:2"}}
	_ = unstructured.SetNestedSlice(missed.Object, image, "spec", "template", "spec", "containers")
	missed = defaulted(missed)
	repairing := missed.DeepCopy()
	_ = unstructured.SetNestedField(repairing.Object, "true", "metadata", "labels", v1alpha1.IgnoredSuspendLabel)
	for name, missed := range map[string]*unstructured.Unstructured{"a template": missed, "a template with a repair label": repairing} {
		if got := attempts(admitKnative(t, missed, missed, v1alpha1.ControllerUser)); got != "2 2 true" {
			t.Errorf("%s: attempts %q, want %q", name, got, "2 2 true")
		}
	}
}

func TestTheDeploymentOfAKnativeServiceGetsNoVersion(t *testing.T) {
	d := build()
	d.Labels = map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "s"}
	answer := func() string {
		return string(newHandler().Admit(t.Context(), admissiontest.Request(t, nil, d)).Response.Patch)
	}
	if patch := answer(); !strings.Contains(patch, v1alpha1.AttemptAnnotation) {
		t.Errorf("without an owner: patch %q", patch)
	}
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", UID: "r", Controller: new(true)}}
	if patch := answer(); patch != "" {
		t.Errorf("of a Revision: patch %q", patch)
	}
}
