package signingkeys

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	"knative.dev/pkg/controller"
	logtesting "knative.dev/pkg/logging/testing"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/wiring/wiringtest"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: data}
}

// reconcile returns the data of a Secret after a reconciliation.
func reconcile(t *testing.T, name string, data map[string][]byte, leader bool) map[string][]byte {
	t.Helper()
	other := eventsigning.EventSecretName
	if name == other {
		other = eventsigning.VerdictSecretName
	}
	client := fake.NewClientset(newSecret(name, data), newSecret(other, nil))
	r := &Reconciler{secrets: client.CoreV1().Secrets(key.Namespace), clock: clocktesting.NewFakePassiveClock(now)}
	if leader {
		if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Reconcile(t.Context(), key.String())
	if again, after := controller.IsRequeueKey(err); leader && (!again || after != checkInterval) || !leader && !controller.IsSkipKey(err) {
		t.Fatalf("got %v", err)
	}
	secret, err := client.CoreV1().Secrets(key.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

func made(at time.Time) map[string][]byte {
	return map[string][]byte{eventsigning.CurrentKey: []byte("old"), timeKey: []byte(at.Format(time.RFC3339))}
}

func TestAKeyIsMadeAndReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		data     map[string][]byte
		fresh    bool
		previous string
	}{
		"an empty Secret":             {nil, true, ""},
		"a key that is young":         {made(now.Add(-keyLife + time.Second)), false, ""},
		"a key that is old":           {made(now.Add(-keyLife)), true, "old"},
		"a key that a person has set": {map[string][]byte{eventsigning.CurrentKey: []byte("old")}, false, ""},
	} {
		for _, secret := range []string{eventsigning.VerdictSecretName, eventsigning.EventSecretName} {
			t.Run(name+" in "+secret, func(t *testing.T) {
				got := reconcile(t, secret, tc.data, true)
				fresh := len(got[eventsigning.CurrentKey]) == keyBytes
				if fresh != tc.fresh || string(got[eventsigning.PreviousKey]) != tc.previous {
					t.Errorf("a fresh key: %t, previous %q", fresh, got[eventsigning.PreviousKey])
				}
				if fresh && string(got[timeKey]) != now.Format(time.RFC3339) {
					t.Errorf("made at %s", got[timeKey])
				}
			})
		}
	}
}

func TestOnlyTheLeaderMakesAKey(t *testing.T) {
	if got := reconcile(t, eventsigning.VerdictSecretName, nil, false); len(got) > 0 {
		t.Error("wrote a key")
	}
}

// reconcileAll returns the keys of the Secrets after a reconciliation, and its error.
func reconcileAll(t *testing.T, names ...string) (map[string]bool, error) {
	t.Helper()
	client := fake.NewClientset()
	for _, name := range names {
		if err := client.Tracker().Add(newSecret(name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	r := &Reconciler{secrets: client.CoreV1().Secrets(key.Namespace), clock: clocktesting.NewFakePassiveClock(now)}
	if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	err := r.Reconcile(t.Context(), key.String())
	keys := map[string]bool{}
	for _, name := range names {
		secret, err := client.CoreV1().Secrets(key.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		keys[string(secret.Data[eventsigning.CurrentKey])] = true
	}
	return keys, err
}

// Without config/judge there is no Secret of function judge.
func TestEachSecretHasAKeyOfItsOwn(t *testing.T) {
	for _, names := range [][]string{
		{eventsigning.VerdictSecretName, eventsigning.EventSecretName},
		{eventsigning.VerdictSecretName, eventsigning.EventSecretName, eventsigning.JudgeSecretName},
	} {
		keys, err := reconcileAll(t, names...)
		if again, _ := controller.IsRequeueKey(err); !again {
			t.Errorf("the Secrets are not checked again: %v", err)
		}
		if len(keys) != len(names) || keys[""] {
			t.Errorf("%d keys, want one for each of %q", len(keys), names)
		}
	}
}

func TestAMissingSecretKeepsNoOtherFromItsKey(t *testing.T) {
	for _, name := range []string{eventsigning.VerdictSecretName, eventsigning.EventSecretName} {
		keys, err := reconcileAll(t, name)
		if again, _ := controller.IsRequeueKey(err); again || err == nil {
			t.Errorf("the missing Secret is no error: %v", err)
		}
		if keys[""] {
			t.Errorf("Secret %s has no key", name)
		}
	}
}

func TestSecretsAreReadEachMinuteHoweverOftenThatFailed(t *testing.T) {
	wiringtest.CheckRetriesWithin(t, time.Minute, func(t *testing.T) *controller.Impl {
		ctx, _ := fakekubeclient.With(logtesting.TestContextWithLogger(t))
		return NewController(ctx, nil)
	})
}
