package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

func TestDoctorReadsTheMistakesInTheSettingsOfTheServer(t *testing.T) {
	for key, data := range map[string]map[string]string{
		"total-deadline": {"base-url": "http://server", "total-deadline": "x"},
		"base_url":       {"base_url": "http://server"},
	} {
		kube := kubefake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "config-altershield"}, Data: data})
		var in diagnosis.Installation
		if err := (&clients{kube: kube}).addresses(t.Context(), &in); err != nil || in.ServerInvalid == nil || !strings.Contains(in.ServerInvalid.Error(), key) {
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

func TestDoctorReadsWhichJudgesAreRejected(t *testing.T) {
	key := func(letter byte, n int) []byte { return bytes.Repeat([]byte{letter}, n) }
	setting := func(content string) *v1alpha1.OpsConfigInfo {
		return &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "judges"},
			Spec: v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigJudges, Content: content, Enable: true}}
	}
	keys := kubefake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "external-judge-keys"},
		Data: map[string][]byte{"canary": key('a', 32), "canary.previous": {}, "short": key('a', 31), "was": key('b', 32), "was.previous": key('b', 31), "same": key('c', 32), "other": key('c', 32)}})
	noKey := []string{`key "metricks" is missing in Secret external-judge-keys`}
	forbidden := kubefake.NewClientset()
	forbidden.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "external-judge-keys", nil)
	})
	for name, tc := range map[string]struct {
		setting *v1alpha1.OpsConfigInfo
		kube    *kubefake.Clientset
		want    []string
		unknown bool
	}{
		"judges of Breakwater need none":   {setting("server, metrics"), forbidden, nil, false},
		"a judge has a key":                {setting("canary"), keys, nil, false},
		"a key is too short":               {setting("short"), keys, []string{`key "short" of Secret external-judge-keys is shorter than 32 bytes`}, false},
		"the previous key is too short":    {setting("was"), keys, []string{`key "was.previous" of Secret external-judge-keys is shorter than 32 bytes`}, false},
		"another judge has the key":        {setting("same"), keys, []string{`"same" and "other" of Secret external-judge-keys have the same key, so one judge could sign for the other`}, false},
		"a name is misspelled":             {setting("metricks, canary"), keys, noKey, false},
		"there is no Secret":               {setting("metricks"), kubefake.NewClientset(), noKey, false},
		"the user may not read the Secret": {setting("canary"), forbidden, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var in diagnosis.Installation
			c := &clients{kube: tc.kube, breakwater: fake.NewSimpleClientset()}
			if _, err := c.breakwater.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace).Create(t.Context(), tc.setting, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := c.judges(t.Context(), &in); err != nil || !slices.Equal(in.JudgesRejected, tc.want) || (in.JudgesUnknown != nil) != tc.unknown {
				t.Errorf("rejected: %q, unknown: %v, %v", in.JudgesRejected, in.JudgesUnknown, err)
			}
		})
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
			if err := (&clients{kube: tc.kube}).addresses(t.Context(), &in); err != nil || in.Server != tc.server || in.Centre != tc.centre {
				t.Errorf("server %q, centre %q, %v", in.Server, in.Centre, err)
			}
		})
	}
}
