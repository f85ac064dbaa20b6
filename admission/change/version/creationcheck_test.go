package version

import (
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const optedIn = `{"f:metadata":{"f:labels":{"f:admission-webhook-altershield":{}}}}`

// by is an entry of managedFields, minutes after the hour.
func by(manager string, minute int, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: new(metav1.NewTime(at(minute, 0))), FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func at(minute, second int) time.Time { return time.Date(2026, 2, 3, 4, minute, second, 0, time.UTC) }

// installed is the annotation of a webhook that was installed minutes after the hour.
func installed(minute int) string {
	return fmt.Sprintf(`{"mdeployment.kb.io":%q}`, at(minute, 0).Format(time.RFC3339))
}

func newCreationCheck(t *testing.T, namespace []metav1.ManagedFieldsEntry, installed string) (*CreationCheck, *fake.Clientset) {
	t.Helper()
	client := fake.NewSimpleClientset()
	if err := client.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}, ManagedFields: namespace,
	}}); err != nil {
		t.Fatal(err)
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := index.Add(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "breakwater", Annotations: map[string]string{webhookconfig.InstalledAnnotation: installed}},
	}); err != nil {
		t.Fatal(err)
	}
	return &CreationCheck{Namespaces: client.CoreV1(), Mutating: admissionlisters.NewMutatingWebhookConfigurationLister(index)}, client
}

func TestAWorkloadThatTheWebhookDidNotSeeIsMissed(t *testing.T) {
	entries := func(e ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return e }
	timeless := by("kubectl-label", 10, optedIn)
	timeless.Time = nil
	for name, tc := range map[string]struct {
		namespace []metav1.ManagedFieldsEntry
		installed string
		created   time.Time
		want      bool
	}{
		"created after the opt-in":                {entries(by("kubectl-label", 10, optedIn)), installed(5), at(10, 11), true},
		"created before the opt-in":               {entries(by("kubectl-label", 10, optedIn)), installed(5), at(9, 0), false},
		"created within seconds after the opt-in": {entries(by("kubectl-label", 10, optedIn)), installed(5), at(10, 10), false},
		"namespace opted in before the webhook was installed": {
			entries(by("kubectl-label", 5, optedIn)), installed(10), at(9, 0), false,
		},
		"opted in again later":                  {entries(by("a", 5, optedIn), by("b", 10, optedIn)), installed(5), at(9, 0), false},
		"another field written later":           {entries(by("a", 5, optedIn), by("b", 10, `{"f:metadata":{}}`)), installed(5), at(9, 0), true},
		"manager of the opt-in is unknown":      {nil, installed(5), at(30, 0), false},
		"time of the opt-in is unknown":         {entries(timeless), installed(5), at(30, 0), false},
		"no webhook for the kind":               {entries(by("a", 5, optedIn)), `{"mother.kb.io":"2026-02-03T04:05:00Z"}`, at(30, 0), false},
		"time of the installation is malformed": {entries(by("a", 5, optedIn)), `{`, at(30, 0), false},
		"malformed managedFields":               {entries(by("a", 5, `[]`)), installed(5), at(30, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newCreationCheck(t, tc.namespace, tc.installed)
			w := builder.Workload(t, build())
			w.CreationTimestamp = metav1.NewTime(tc.created)
			got, err := g.Missed(t.Context(), w)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestAnErrorOfTheAPIServerDoesNotMakeABaseline(t *testing.T) {
	g, client := newCreationCheck(t, nil, "")
	client.PrependReactor("get", "namespaces", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("too slow")
	})
	s := newHandler()
	s.Creations = g
	answer := s.Admit(t.Context(), admissiontest.Request(t, build(), build(label("team", "a"))))
	if !answer.Response.Allowed || answer.Response.Patch != nil || answer.Decision != "Error" {
		t.Errorf("got %+v", answer)
	}
}
