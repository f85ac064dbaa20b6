package verdictkey

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// reconcile returns the Secret after a reconciliation.
func reconcile(t *testing.T, data map[string][]byte, leader bool) map[string][]byte {
	t.Helper()
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data})
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
	secret, err := client.CoreV1().Secrets(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
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
		t.Run(name, func(t *testing.T) {
			got := reconcile(t, tc.data, true)
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

func TestOnlyTheLeaderMakesAKey(t *testing.T) {
	if got := reconcile(t, nil, false); len(got) > 0 {
		t.Error("wrote a key")
	}
}

// Without config/judge there is no such Secret.
func TestTheKeyOfFunctionJudgeIsMadeWhereItsSecretExists(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: key.Namespace, Name: name} }
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: meta(key.Name)}, &corev1.Secret{ObjectMeta: meta(eventsigning.JudgeSecretName)})
	r := &Reconciler{secrets: client.CoreV1().Secrets(key.Namespace), clock: clocktesting.NewFakePassiveClock(now)}
	if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	if again, _ := controller.IsRequeueKey(r.Reconcile(t.Context(), key.String())); !again {
		t.Error("the Secrets are not checked again")
	}
	keys := map[string]bool{}
	for _, name := range []string{key.Name, eventsigning.JudgeSecretName} {
		secret, err := client.CoreV1().Secrets(key.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		keys[string(secret.Data[eventsigning.CurrentKey])] = true
	}
	if len(keys) != 2 || keys[""] {
		t.Errorf("%d keys, want one for each Secret", len(keys))
	}
}
