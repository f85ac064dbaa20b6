package webhookconfig

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

// reconcileAt reconciles the mutating configurations and returns what is written to them, by name.
func reconcileAt(t *testing.T, at time.Time, objects ...runtime.Object) map[string]*admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	r, client := newReconciler(t, objects...)
	r.Static, r.Generated, r.Kinds, r.Namespaces = "breakwater", generated, cloneSets, client.CoreV1().Namespaces()
	r.RecordInstallation, r.Clock = true, clocktesting.NewFakePassiveClock(at)
	written := map[string]*admissionregistrationv1.MutatingWebhookConfiguration{}
	client.PrependReactor("patch", "*", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		p := a.(clientgotesting.PatchAction)
		config := new(admissionregistrationv1.MutatingWebhookConfiguration)
		if err := json.Unmarshal(p.GetPatch(), config); err != nil {
			t.Error(err)
		}
		written[p.GetName()] = config
		return true, config, nil
	})
	for _, name := range []string{"breakwater", generated} {
		err := r.Reconcile(t.Context(), MutatingKey(name).String())
		if requeue, _ := controller.IsRequeueKey(err); !requeue {
			t.Fatal(err)
		}
	}
	return written
}

// The path of a webhook is replaced in each period. The time of its installation stays: with a
// newer one, a workload that was created while the webhook was unavailable would be a baseline.
func TestANewPathDoesNotChangeTheTimeOfTheInstallation(t *testing.T) {
	objects := static()
	config := objects[1].(*admissionregistrationv1.MutatingWebhookConfiguration)
	config.Annotations = map[string]string{InstalledAnnotation: `{"a.kb.io":"2026-11-20T01:02:03Z","gone.kb.io":"2026-11-20T01:02:03Z"}`}
	first := reconcileAt(t, now, append(objects, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: generated, ResourceVersion: "1"},
	})...)
	old := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	for name, want := range map[string]map[string]time.Time{
		"breakwater": {"a.kb.io": old, "mdeployment.kb.io": now}, // neither gone.kb.io nor a webhook of another Service
		generated:    {"mcloneset.apps.kruise.io.kb.io": now},
	} {
		if got := installedTimes(first[name]); !maps.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}

	config.Annotations = first["breakwater"].Annotations
	first[generated].ResourceVersion = "2"
	second := reconcileAt(t, now.Add(webhookpath.PeriodLength), append(objects, first[generated])...)
	for _, name := range []string{"breakwater", generated} {
		before, after := first[name], second[name]
		if after == nil || len(after.Webhooks) == 0 {
			t.Fatalf("%s: no new path was written", name)
		}
		// A merge patch has only what changes; a configuration that is applied has everything.
		got, stays := after.Annotations[InstalledAnnotation], before.Annotations[InstalledAnnotation]
		if got != stays && (name == generated || got != "") {
			t.Errorf("%s: got %s, want %s", name, got, stays)
		}
	}
}
