package selfcheck

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// fixture is a fake cluster with one webhook and one policy.
type fixture struct {
	*Reconciler
	kube     *kubefake.Clientset
	recorder *record.FakeRecorder
	now      *testingclock.FakePassiveClock
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	served, bundle := certificate(t, service)
	kube, recorder := kubefake.NewClientset(
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "a", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Ports:      []discoveryv1.EndpointPort{{Name: new("http-metrics"), Port: new(int32(9090))}, {Name: new(webhookpeers.Port), Port: new(int32(8443))}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "breakwater-protection"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{*newEntry(bundle).Found}},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "replicas"}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "replicas"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}},
	), record.NewFakeRecorder(10)
	now := testingclock.NewFakePassiveClock(time.Now())
	w := fixture{kube: kube, recorder: recorder, now: now, Reconciler: &Reconciler{
		plan: Plan{Service: service, Webhooks: []RequiredWebhook{{Configuration: "breakwater-protection", Webhook: "vpodbudget.kb.io"}},
			Policies: []string{"replicas"}, Bindings: []string{"replicas"}},
		admission: kube.AdmissionregistrationV1(), endpoints: kube.DiscoveryV1(), recorder: recorder,
		clock: now, unchanged: newUnchanged(metadataOf(kube), now),
		presented: func(_ context.Context, address, name string) (*x509.Certificate, error) {
			if address != "10.0.0.1:8443" || name != host {
				return nil, errors.New("unknown address " + address)
			}
			return served, nil
		},
	}}
	if err := w.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// metadataOf returns a client of the metadata of the objects in kube.
func metadataOf(kube *kubefake.Clientset) metadata.Interface {
	client := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	client.PrependReactor("get", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		found, err := kube.Tracker().Get(a.GetResource(), a.GetNamespace(), a.(k8stesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		object, err := meta.Accessor(found)
		return true, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}, err
	})
	return client
}

// check reconciles once, and returns the time until the next check and the Events.
func (w fixture) check(t *testing.T) (wait time.Duration, emitted []string) {
	t.Helper()
	requeue, wait := controller.IsRequeueKey(w.Reconcile(t.Context(), Key.String()))
	if !requeue {
		t.Fatal("no further check is queued")
	}
	for len(w.recorder.Events) > 0 {
		emitted = append(emitted, <-w.recorder.Events)
	}
	return wait, emitted
}

// open returns the reasons whose metric is 1.
func (w fixture) open() []string {
	var open []string
	values := w.metricValues()
	for _, reason := range Reasons() {
		if values[reason] == 1 {
			open = append(open, reason)
		}
	}
	return open
}

func (w fixture) policy(t *testing.T, p admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	configs := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	config, err := configs.Get(t.Context(), "breakwater-protection", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Webhooks[0].FailurePolicy = new(p)
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnenforcedGuardIsReportedEveryHalfHourUntilItIsEnforced(t *testing.T) {
	w := newFixture(t)
	if values := w.metricValues(); values != nil {
		t.Errorf("metrics before the first check: %v", values)
	}
	if wait, emitted := w.check(t); wait != interval || len(emitted) > 0 || len(w.open()) > 0 || len(w.metricValues()) != len(Reasons()) {
		t.Errorf("no finding: next check in %s, Events %q, metrics %v", wait, emitted, w.metricValues())
	}
	w.policy(t, admissionregistrationv1.Ignore)
	if wait, emitted := w.check(t); wait != confirmAfter || len(emitted) > 0 || len(w.open()) > 0 {
		t.Errorf("unconfirmed finding: next check in %s, Events %q, metrics %v", wait, emitted, w.open())
	}
	wait, emitted := w.check(t)
	if wait != interval || len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Warning "+ReasonFailurePolicyIgnore+" vpodbudget.kb.io: ") {
		t.Errorf("confirmed finding: next check in %s, Events %q", wait, emitted)
	}
	if diff := cmp.Diff([]string{ReasonFailurePolicyIgnore}, w.open()); diff != "" {
		t.Error(diff)
	}
	if _, emitted := w.check(t); len(emitted) > 0 {
		t.Errorf("Events are repeated: %q", emitted)
	}
	w.now.SetTime(w.now.Now().Add(eventrecorder.RepeatAfter))
	for _, want := range []int{1, 0} {
		if _, emitted := w.check(t); len(emitted) != want {
			t.Errorf("Events before the API server deletes the first one: %q, want %d", emitted, want)
		}
	}
	w.policy(t, admissionregistrationv1.Fail)
	if _, emitted := w.check(t); len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Normal "+ReasonGuardEnforced) || len(w.open()) > 0 {
		t.Errorf("Events %q, metrics %v", emitted, w.open())
	}
}

func TestRemovedGuardsAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		remove func(fixture) error
		want   []string
	}{
		"the configuration": {func(w fixture) error {
			return w.admission.ValidatingWebhookConfigurations().Delete(t.Context(), "breakwater-protection", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"a policy": {func(w fixture) error {
			return w.admission.ValidatingAdmissionPolicies().Delete(t.Context(), "replicas", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"a binding": {func(w fixture) error {
			return w.admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "replicas", metav1.DeleteOptions{})
		}, []string{ReasonGuardMissing}},
		"the endpoints": {func(w fixture) error {
			return w.endpoints.EndpointSlices(v1alpha1.SystemNamespace).Delete(t.Context(), "a", metav1.DeleteOptions{})
		}, []string{ReasonNoEndpoints}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if err := tc.remove(w); err != nil {
				t.Fatal(err)
			}
			w.check(t)
			w.check(t)
			if diff := cmp.Diff(tc.want, w.open()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPolicyMayHaveFailurePolicyIgnoreOnlyOnPurpose(t *testing.T) {
	for name, tc := range map[string]struct{ ignoring, want []string }{
		"on purpose":     {ignoring: []string{"replicas"}},
		"not on purpose": {want: []string{ReasonPolicyNotDenying}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.plan.FailingOpen = tc.ignoring
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "replicas"},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{FailurePolicy: new(admissionregistrationv1.Ignore)}}
			if _, err := w.admission.ValidatingAdmissionPolicies().Update(t.Context(), policy, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.check(t)
			w.check(t)
			if diff := cmp.Diff(tc.want, w.open()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTheLeaderExposesFindings(t *testing.T) {
	w := newFixture(t)
	w.check(t)
	w.Demote(reconciler.UniversalBucket())
	if values := w.metricValues(); values != nil {
		t.Errorf("metrics after the lease was lost: %v", values)
	}
	if err := w.Reconcile(t.Context(), Key.String()); !controller.IsSkipKey(err) {
		t.Errorf("check after the lease was lost: %v", err)
	}
}

// The end of one finding does not mean that the guard works: GuardEnforced follows its last finding.
func TestAGuardIsEnforcedAgainWhenItsLastFindingEnds(t *testing.T) {
	w := newFixture(t)
	configs := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	w.policy(t, admissionregistrationv1.Ignore)
	w.check(t)
	w.check(t)
	config, err := configs.Get(t.Context(), "breakwater-protection", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := configs.Delete(t.Context(), config.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if wait, emitted := w.check(t); wait != confirmAfter || len(emitted) > 0 {
		t.Errorf("after the webhook was deleted: next check in %s, Events %q", wait, emitted)
	}
	_, emitted := w.check(t)
	if len(emitted) != 2 || !strings.HasPrefix(emitted[0], "Warning "+ReasonGuardMissing) ||
		emitted[1] != "Normal "+ReasonFindingEnded+" vpodbudget.kb.io: no longer FailurePolicyIgnore; still GuardMissing" {
		t.Errorf("a guard with another finding: Events %q", emitted)
	}
	config.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Fail)
	if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, emitted := w.check(t); len(emitted) != 1 || emitted[0] != "Normal "+ReasonGuardEnforced+" vpodbudget.kb.io: no longer GuardMissing" {
		t.Errorf("Events %q", emitted)
	}
}

// A check that could not read a guard does not end its findings.
func TestAFindingStaysWhileItsGuardCannotBeRead(t *testing.T) {
	w := newFixture(t)
	w.policy(t, admissionregistrationv1.Ignore)
	w.check(t)
	w.check(t)
	var failure error
	w.kube.PrependReactor("get", "validatingwebhookconfigurations", func(k8stesting.Action) (bool, runtime.Object, error) {
		return failure != nil, nil, failure
	})
	failure = errors.New("the server is overloaded")
	if _, emitted := w.check(t); len(emitted) > 0 {
		t.Errorf("one failed read: Events %q", emitted)
	}
	failure = nil
	if _, emitted := w.check(t); len(emitted) > 0 {
		t.Errorf("after the failed read: Events %q", emitted)
	}
	if diff := cmp.Diff([]string{ReasonFailurePolicyIgnore}, w.open()); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadEndpointsAreNotMissingReplicas(t *testing.T) {
	w := newFixture(t)
	w.kube.PrependReactor("list", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	w.check(t)
	w.check(t)
	if diff := cmp.Diff([]string{ReasonStateUnreadable}, w.open()); diff != "" {
		t.Error(diff)
	}
}
