package webhookhealth

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// world is a cluster with one webhook and one policy.
type world struct {
	*Reconciler
	kube     *kubefake.Clientset
	recorder *record.FakeRecorder
}

func newWorld(t *testing.T) world {
	t.Helper()
	served, bundle := certificate(t, service)
	kube, recorder := kubefake.NewClientset(
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "a", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("http-metrics"), Port: ptr.To[int32](9090)}, {Name: ptr.To(webhookpeers.Port), Port: ptr.To[int32](8443)}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "breakwater-protection"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{*newEntry(bundle).Found}},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "replicas"}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "replicas"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}},
	), record.NewFakeRecorder(10)
	w := world{kube: kube, recorder: recorder, Reconciler: &Reconciler{
		plan: Plan{Service: service, Guards: []Guard{{Configuration: "breakwater-protection", Webhook: "vpodbudget.kb.io"}},
			Policies: []string{"replicas"}, Bindings: []string{"replicas"}},
		admission: kube.AdmissionregistrationV1(), endpoints: kube.DiscoveryV1(), recorder: recorder,
		clock: testingclock.NewFakePassiveClock(time.Now()),
		presented: func(_ context.Context, address, name string) (*x509.Certificate, error) {
			if address != "10.0.0.1:8443" || name != host {
				return nil, errors.New("who is " + address)
			}
			return served, nil
		},
	}}
	if err := w.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// look looks once, and returns when it looks again and what was told.
func (w world) look(t *testing.T) (wait time.Duration, told []string) {
	t.Helper()
	requeue, wait := controller.IsRequeueKey(w.Reconcile(t.Context(), Key.String()))
	if !requeue {
		t.Fatal("it does not look again")
	}
	for len(w.recorder.Events) > 0 {
		told = append(told, <-w.recorder.Events)
	}
	return wait, told
}

// open are the reasons whose metric is 1.
func (w world) open() []string {
	var open []string
	values := w.now()
	for _, reason := range Reasons() {
		if values[reason] == 1 {
			open = append(open, reason)
		}
	}
	return open
}

func (w world) policy(t *testing.T, p admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	configs := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	config, err := configs.Get(t.Context(), "breakwater-protection", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Webhooks[0].FailurePolicy = ptr.To(p)
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnenforcedGuardIsReportedOnceUntilItIsEnforced(t *testing.T) {
	w := newWorld(t)
	if values := w.now(); values != nil {
		t.Errorf("before it has looked it shows %v", values)
	}
	if wait, told := w.look(t); wait != interval || len(told) > 0 || len(w.open()) > 0 || len(w.now()) != len(Reasons()) {
		t.Errorf("nothing is open: looked at again in %s, told %q, shows %v", wait, told, w.now())
	}
	w.policy(t, admissionregistrationv1.Ignore)
	if wait, told := w.look(t); wait != confirmAfter || len(told) > 0 || len(w.open()) > 0 {
		t.Errorf("what is seen for the first time: looked at again in %s, told %q, shows %v", wait, told, w.open())
	}
	wait, told := w.look(t)
	if wait != interval || len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+ReasonFailurePolicyIgnore+" vpodbudget.kb.io: ") {
		t.Errorf("looked at again in %s, told %q", wait, told)
	}
	if diff := cmp.Diff([]string{ReasonFailurePolicyIgnore}, w.open()); diff != "" {
		t.Error(diff)
	}
	if _, told := w.look(t); len(told) > 0 {
		t.Errorf("told again: %q", told)
	}
	w.policy(t, admissionregistrationv1.Fail)
	if _, told := w.look(t); len(told) != 1 || !strings.HasPrefix(told[0], "Normal "+ReasonGuardEnforced) || len(w.open()) > 0 {
		t.Errorf("told %q, shows %v", told, w.open())
	}
}

func TestRemovedGuardsAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(world) error
		want []string
	}{
		"the configuration": {func(w world) error {
			return w.admission.ValidatingWebhookConfigurations().Delete(t.Context(), "breakwater-protection", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"a policy": {func(w world) error {
			return w.admission.ValidatingAdmissionPolicies().Delete(t.Context(), "replicas", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"a binding": {func(w world) error {
			return w.admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "replicas", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"the endpoints": {func(w world) error {
			return w.endpoints.EndpointSlices(v1alpha1.SystemNamespace).Delete(t.Context(), "a", metav1.DeleteOptions{})
		}, []string{ReasonNoEndpoints}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := tc.take(w); err != nil {
				t.Fatal(err)
			}
			w.look(t)
			w.look(t)
			if diff := cmp.Diff(tc.want, w.open()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTheLeaderExposesFindings(t *testing.T) {
	w := newWorld(t)
	w.look(t)
	w.Demote(reconciler.UniversalBucket())
	if values := w.now(); values != nil {
		t.Errorf("one that leads no more shows %v", values)
	}
	if err := w.Reconcile(t.Context(), Key.String()); !controller.IsSkipKey(err) {
		t.Errorf("one that leads no more looks: %v", err)
	}
}
