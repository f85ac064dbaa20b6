package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
