package webhookconfig

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const generated = "breakwater-workloads"

func cloneSets() workloadkinds.State {
	return workloadkinds.State{Data: "the text", Kinds: append(workload.BuiltIn(), workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, Resource: "clonesets",
		PauseField: workload.Field{Path: []string{"spec", "updateStrategy", "paused"}, Paused: true},
	})}
}

func none() workloadkinds.State { return workloadkinds.State{Kinds: workload.BuiltIn()} }

// static are the installed configurations; a person changed a timeout of one to 2 s.
func static() []runtime.Object {
	mutating, validating := mutatingConfig(authority), validatingConfig(authority)
	mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
		Name: "mdeployment.kb.io", ClientConfig: clientConfig("webhook", "mdeployment.kb.io", authority), TimeoutSeconds: new(int32(2)),
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{Resources: []string{"deployments"}}}},
	})
	validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
		Name: "vdeployment.kb.io", ClientConfig: clientConfig("webhook", "vdeployment.kb.io", authority), FailurePolicy: new(admissionregistrationv1.Fail),
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{Resources: []string{"deployments"}}}},
	})
	validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
		Name: "vrelease.kb.io", ClientConfig: clientConfig("webhook", "vrelease.kb.io", authority), FailurePolicy: new(admissionregistrationv1.Ignore),
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{Resources: []string{"deployments", "statefulsets"}}}},
	})
	return []runtime.Object{certificate(), mutating, validating,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SystemNamespace, UID: "ns"}}}
}

// apply reconciles both generated configurations and returns what is applied.
func apply(t *testing.T, state workloadkinds.State, objects ...runtime.Object) (map[string]admissionregistrationv1.MutatingWebhookConfiguration, []string) {
	t.Helper()
	r, client := newReconciler(t, objects...)
	recorder := record.NewFakeRecorder(10)
	r.Static, r.Generated, r.Kinds = "breakwater", generated, func() workloadkinds.State { return state }
	r.Namespaces, r.Recorder = client.CoreV1().Namespaces(), recorder
	applied := map[string]admissionregistrationv1.MutatingWebhookConfiguration{}
	client.PrependReactor("patch", "*", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		p := a.(clientgotesting.PatchAction)
		// Both kinds of configuration have the tested fields at the same paths.
		var config admissionregistrationv1.MutatingWebhookConfiguration
		if err := json.Unmarshal(p.GetPatch(), &config); err != nil {
			t.Error(err)
		}
		applied[string(p.GetPatchType())+" "+p.GetName()+" "+a.GetResource().Resource] = config
		return true, nil, nil
	})
	for _, key := range []string{MutatingKey(generated).String(), ValidatingKey(generated).String()} {
		if err := r.Reconcile(t.Context(), key); !untilTheNextPeriod(err) {
			t.Fatal(err)
		}
	}
	close(recorder.Events)
	var emitted []string
	for e := range recorder.Events {
		emitted = append(emitted, e)
	}
	return applied, emitted
}

func TestAKindThatIsNamedGetsWebhooksLikeADeployments(t *testing.T) {
	applied, emitted := apply(t, cloneSets(), static()...)
	mutating := applied["application/apply-patch+yaml breakwater-workloads mutatingwebhookconfigurations"]
	validating := applied["application/apply-patch+yaml breakwater-workloads validatingwebhookconfigurations"]
	if len(mutating.Webhooks) != 1 || len(validating.Webhooks) != 2 {
		t.Fatalf("applied %v", applied)
	}
	m, v := mutating.Webhooks[0], validating.Webhooks[0]
	if m.Name != "mcloneset.apps.kruise.io.kb.io" || *m.TimeoutSeconds != 2 || m.Rules[0].Resources[0] != "clonesets" || string(m.ClientConfig.CABundle) != authority {
		t.Errorf("applied %+v", m)
	}
	if v.Name != "vcloneset.apps.kruise.io.kb.io" || *v.FailurePolicy != admissionregistrationv1.Fail || *v.ClientConfig.Service.Path != path("vcloneset.apps.kruise.io.kb.io") {
		t.Errorf("applied %+v", v)
	}
	check := validating.Webhooks[1]
	if check.Name != "vrelease.kb.io" || *check.FailurePolicy != admissionregistrationv1.Ignore || string(check.ClientConfig.CABundle) != authority ||
		len(check.Rules) != 1 || check.Rules[0].APIGroups[0] != "apps.kruise.io" || check.Rules[0].Resources[0] != "clonesets" {
		t.Errorf("applied %+v", check)
	}
	if got := v.MatchConditions[0].Expression; !strings.Contains(got, "object.spec.?updateStrategy.?paused") {
		t.Errorf("asked when %s", got)
	}
	for kind, config := range applied {
		if config.Labels["admissions.enforcer/disabled"] != "true" {
			t.Errorf("%s has the labels %v", kind, config.Labels)
		}
	}
	if got := mutating.Annotations[KindsAnnotation]; got != "the text" {
		t.Errorf("remembers %q", got)
	}
	if o := mutating.OwnerReferences; len(o) != 1 || o[0].UID != "ns" {
		t.Errorf("owned by %v", o)
	}
	if len(emitted) > 0 {
		t.Errorf("Events: %v", emitted)
	}
}

func TestWithoutKindsGeneratedConfigurationsAreEmptied(t *testing.T) {
	if applied, _ := apply(t, none(), static()...); len(applied) > 0 {
		t.Errorf("applied %v", applied)
	}
	old := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: generated, ResourceVersion: "1"}}
	applied, _ := apply(t, none(), append(static(), old)...)
	config, ok := applied["application/apply-patch+yaml breakwater-workloads mutatingwebhookconfigurations"]
	if !ok || len(config.Webhooks) > 0 {
		t.Errorf("applied %v", applied)
	}
}

func TestAMistakeIsReportedOnceAndTheLastValidStateStays(t *testing.T) {
	state := cloneSets()
	state.Err = errors.New("kinds[0].kind: wrong")
	applied, emitted := apply(t, state, static()...)
	if len(applied) != 2 {
		t.Errorf("applied %v", applied)
	}
	if len(emitted) != 1 || emitted[0] != "Warning Invalid the ConfigMap is invalid, its last valid state is used: kinds[0].kind: wrong" {
		t.Errorf("Events: %v", emitted)
	}
}

// A list that was never valid has no last valid state.
func TestAMistakeInTheFirstListIsReported(t *testing.T) {
	state := none()
	state.Err = errors.New("kinds[0].kind: wrong")
	_, emitted := apply(t, state, static()...)
	if len(emitted) != 1 || emitted[0] != "Warning Invalid the ConfigMap is invalid, only the built-in kinds are used: kinds[0].kind: wrong" {
		t.Errorf("Events: %v", emitted)
	}
}

func TestNothingIsGeneratedWithoutTheConfigurationOfDeployments(t *testing.T) {
	if applied, _ := apply(t, cloneSets(), certificate()); len(applied) > 0 {
		t.Errorf("applied %v", applied)
	}
}
