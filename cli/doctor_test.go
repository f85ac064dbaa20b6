package cli

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

func TestDoctorReadsTheMistakesInTheSettingsOfTheServer(t *testing.T) {
	for key, data := range map[string]map[string]string{
		"total-deadline": {"base-url": "http://server", "total-deadline": "x"},
		"base_url":       {"base_url": "http://server"},
	} {
		kube := kubefake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "config-altershield"}, Data: data})
		var in diagnosis.Installation
		if err := (&clients{kube: kube}).settings(t.Context(), &in); err != nil || in.ServerInvalid == nil || !strings.Contains(in.ServerInvalid.Error(), key) {
			t.Errorf("%s: %v, mistakes %v", key, err, in.ServerInvalid)
		}
	}
}

func TestDoctorReadsTheSubscribersOfTriggers(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "eventing.knative.dev", Version: "v1", Kind: "Trigger"}, meta.RESTScopeNamespace)
	trigger := func(name string, ref map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
			"metadata": map[string]any{"namespace": v1alpha1.SystemNamespace, "name": name},
			"spec":     map[string]any{"subscriber": map[string]any{"ref": ref}}}}
	}
	in := diagnosis.Installation{ReadyConditions: map[string]diagnosis.Condition{}}
	c := &clients{mapper: mapper, dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(),
		trigger("a", map[string]any{"kind": "Service", "name": "judge"}),
		trigger("b", map[string]any{"kind": "Service", "name": "submit", "namespace": v1alpha1.SystemNamespace}),
		trigger("c", map[string]any{"kind": "Service", "name": "report", "namespace": "canary"}),
	)}
	if err := c.readiness(t.Context(), &in); err != nil || !slices.Equal(in.Subscribers, []string{"judge", "submit"}) {
		t.Errorf("got %q, %v", in.Subscribers, err)
	}
}

func TestDoctorReadsTheAddressesOfTheServerAndTheCentre(t *testing.T) {
	config := func(name, key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}, Data: map[string]string{key: value}}
	}
	for name, tc := range map[string]struct {
		kube           *kubefake.Clientset
		server, centre string
	}{
		"both": {kubefake.NewClientset(config("config-altershield", "base-url", "http://server"), config("config-permission", settings.KeyCentreURL, "https://centre")),
			"http://server", "https://centre"},
		"a part is not installed": {kubefake.NewClientset(config("config-altershield", "base-url", "http://server")), "http://server", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var in diagnosis.Installation
			if err := (&clients{kube: tc.kube}).settings(t.Context(), &in); err != nil || in.Server != tc.server || in.Centre != tc.centre {
				t.Errorf("server %q, centre %q, %v", in.Server, in.Centre, err)
			}
		})
	}
}
