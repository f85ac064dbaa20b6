package cascade

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: phase}}
}

func terminating(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	now := metav1.Now()
	c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
	return c
}

func volumeClaim(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
}

// deletion returns the request to delete an object.
func deletion(t *testing.T, kind, resource string, object metav1.Object) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Name: object.GetName(),
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource},
		OldObject: runtime.RawExtension{Raw: raw},
	}
}

func shop(labels, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels, Annotations: annotations}}
}

var protected = map[string]string{v1alpha1.DisableCascadingDeletionLabel: "true"}

func TestANamespaceIsNotDeletedWhileItHasDependents(t *testing.T) {
	now := metav1.Now()
	going := shop(protected, nil)
	going.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		there     []runtime.Object
		decision  string
		message   string
	}{
		"without a label":                 {shop(nil, nil), []runtime.Object{pod("a", corev1.PodRunning)}, "Admitted", ""},
		"with another value":              {shop(map[string]string{v1alpha1.DisableCascadingDeletionLabel: "false"}, nil), []runtime.Object{pod("a", corev1.PodRunning)}, "Admitted", ""},
		"empty":                           {shop(protected, nil), nil, DecisionNoDependents, ""},
		"with completed pods":             {shop(protected, nil), []runtime.Object{pod("a", corev1.PodSucceeded), pod("b", corev1.PodFailed)}, DecisionNoDependents, ""},
		"with an unbound volume claim":    {shop(protected, nil), []runtime.Object{volumeClaim("a", corev1.ClaimPending)}, DecisionNoDependents, ""},
		"with a terminating volume claim": {shop(protected, nil), []runtime.Object{terminating(volumeClaim("a", corev1.ClaimBound))}, DecisionNoDependents, ""},
		"with a pod":                      {shop(protected, nil), []runtime.Object{pod("a", corev1.PodRunning)}, DecisionDenied, ": 1 pod would be deleted with it"},
		"with both, the later label": {shop(map[string]string{v1alpha1.DeleteProtectionLabel: v1alpha1.ProtectCascading}, nil),
			[]runtime.Object{pod("a", corev1.PodRunning), pod("b", corev1.PodPending), volumeClaim("c", corev1.ClaimBound)}, DecisionDenied, "2 pods and 1 bound PersistentVolumeClaim would be deleted with it"},
		"in shadow mode": {shop(protected, map[string]string{v1alpha1.ShadowAnnotation: "true"}), []runtime.Object{pod("a", corev1.PodRunning)}, DecisionShadow, ""},
		"terminating":    {going, []runtime.Object{pod("a", corev1.PodRunning)}, "Admitted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := Handler{Core: kubefake.NewClientset(tc.there...).CoreV1(), Recorder: record.NewFakeRecorder(1)}
			a := h.Admit(t.Context(), deletion(t, "Namespace", "namespaces", tc.namespace))
			if a.Decision != tc.decision {
				t.Fatalf("decision %s, want %s: %+v", a.Decision, tc.decision, a.Response)
			}
			if denied := tc.decision == DecisionDenied; a.Response.Allowed == denied {
				t.Errorf("allowed is %t", a.Response.Allowed)
			}
			if tc.message != "" && (a.Response.Result.Code != http.StatusForbidden || !strings.Contains(a.Response.Result.Message, tc.message)) {
				t.Errorf("result %+v", a.Response.Result)
			}
			if shadow := tc.decision == DecisionShadow; shadow != (len(a.Response.Warnings) > 0) {
				t.Errorf("warnings are %q", a.Response.Warnings)
			}
		})
	}
}

func TestADryRunRecordsNoEvent(t *testing.T) {
	for _, dry := range []bool{false, true} {
		recorder := record.NewFakeRecorder(1)
		h := Handler{Core: kubefake.NewClientset(pod("a", corev1.PodRunning)).CoreV1(), Recorder: recorder}
		req := deletion(t, "Namespace", "namespaces", shop(protected, nil))
		req.DryRun = new(dry)
		if a := h.Admit(t.Context(), req); a.Decision != DecisionDenied {
			t.Errorf("decision %s", a.Decision)
		}
		if recorded := len(recorder.Events) == 1; recorded == dry {
			t.Errorf("dry run %t: recorded %t", dry, recorded)
		}
	}
}

func TestADenialSendsACloudEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        int
	}{
		"a denial":                {nil, 1},
		"a denial in shadow mode": {map[string]string{v1alpha1.ShadowAnnotation: "true"}, 0},
	} {
		var sent eventstest.Recorder
		h := Handler{Core: kubefake.NewClientset(pod("a", corev1.PodRunning)).CoreV1(), Recorder: record.NewFakeRecorder(1), Denials: denialevents.New(&sent, clock.RealClock{})}
		object := shop(protected, tc.annotations)
		object.UID = "uid-shop"
		req := deletion(t, "Namespace", "namespaces", object)
		req.UserInfo.Username = "jane"
		h.Admit(t.Context(), req)
		all := sent.Sent()
		if len(all) != tc.want {
			t.Fatalf("%s: sent %v", name, all)
		}
		for _, e := range all {
			if d, err := events.ParseDeletionDenied(e); err != nil || d.Source() != "/api/v1/namespaces/shop" || d.Reason != v1alpha1.ReasonCascadingDeletionDenied || d.Object != "shop" || d.User != "jane" {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
		}
	}
}

func crontabs() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs.stable.example.com", Labels: protected},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "stable.example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}},
		},
	}
}

func TestADefinitionIsNotDeletedWhileItHasObjects(t *testing.T) {
	one := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "stable.example.com/v1", Kind: "CronTab"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
	}
	resource := schema.GroupResource{Group: "stable.example.com", Resource: "crontabs"}
	for name, tc := range map[string]struct {
		there    []runtime.Object
		err      error
		decision string
		message  string
		wayOut   string
	}{
		"none":                 {nil, nil, DecisionNoDependents, "", ""},
		"one":                  {[]runtime.Object{one}, nil, DecisionDenied, "1 object would be deleted with it", "delete its objects first; or remove its label"},
		"listing is forbidden": {nil, apierrs.NewForbidden(resource, "", nil), DecisionDenied, v1alpha1.CountCustomResourcesLabel, "allow the webhook to list crontabs.stable.example.com by"},
		"the server fails":     {nil, apierrs.NewInternalError(http.ErrServerClosed), DecisionDenied, "cannot be counted", "try again if the error is temporary; or remove its label"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			objects := metadatafake.NewSimpleMetadataClient(scheme, tc.there...)
			if tc.err != nil {
				objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			h := Handler{Objects: objects, Recorder: record.NewFakeRecorder(1)}
			req := deletion(t, "CustomResourceDefinition", "customresourcedefinitions", crontabs())
			req.Name = "" // as for a deletecollection
			a := h.Admit(t.Context(), req)
			if a.Decision != tc.decision || (tc.message != "" && !strings.Contains(a.Response.Result.Message, tc.message)) ||
				(tc.wayOut != "" && !strings.Contains(a.Response.Result.Message, "Ways out: "+tc.wayOut)) {
				t.Errorf("decision %s: %+v", a.Decision, a.Response.Result)
			}
		})
	}
}

func TestObjectsAreListedInAServedVersion(t *testing.T) {
	unserved := crontabs()
	unserved.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Storage: true}}
	if got, ok := servedResource(crontabs()); !ok || got.Version != "v1" {
		t.Errorf("got %v, %t", got, ok)
	}
	if got, ok := servedResource(unserved); ok {
		t.Errorf("got %v", got)
	}
}

func TestTheNumberOfCountedObjectsIsBounded(t *testing.T) {
	reads := 0
	list := func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
		reads++
		return &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: make([]corev1.Pod, o.Limit)}, nil
	}
	c, err := countPages(t.Context(), count{one: "pod", many: "pods"}, list, func(l *corev1.PodList) []corev1.Pod { return l.Items }, workload.PodActive)
	if err != nil || reads != maxPages || describe(c) != "at least 2000 pods" {
		t.Errorf("%d reads: %q, %v", reads, describe(c), err)
	}
}

// The completed pods of Jobs do not count. The pods that count may be on a later page.
func TestPagesAreReadUntilAnObjectCounts(t *testing.T) {
	reads := 0
	list := func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
		if reads++; reads > maxPages {
			return &corev1.PodList{Items: []corev1.Pod{*pod("web", corev1.PodRunning)}}, nil
		}
		return &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{*pod("job", corev1.PodSucceeded)}}, nil
	}
	c, err := countPages(t.Context(), count{one: "pod", many: "pods"}, list, func(l *corev1.PodList) []corev1.Pod { return l.Items }, workload.PodActive)
	if err != nil || reads != maxPages+1 || describe(c) != "1 pod" {
		t.Errorf("%d reads: %q, %v", reads, describe(c), err)
	}
}
