package eventsigning

import (
	"errors"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var current = Keys{Current: []byte("current")}

func newEvent(t *testing.T, edit ...func(*event.Event)) event.Event {
	t.Helper()
	e := event.New()
	e.SetType("dev.breakwater.changepod.verdict.v1")
	e.SetID("id")
	e.SetSource("/s")
	e.DataEncoded, e.DataBase64 = []byte(`{"verdict": "fail"}`), false
	if err := current.Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(&e)
	}
	return e
}

func TestOnlyTheSignedEventIsAuthentic(t *testing.T) {
	for name, tc := range map[string]struct {
		keys Keys
		edit func(*event.Event)
		want bool
	}{
		"as signed":             {current, func(*event.Event) {}, true},
		"with the previous key": {Keys{Current: []byte("new"), Previous: []byte("current")}, func(*event.Event) {}, true},
		"with other white space, as after another mode": {current, func(e *event.Event) { e.DataEncoded = []byte(`{"verdict":"fail"}`) }, true},
		"with extensions of a Broker":                   {current, func(e *event.Event) { e.SetExtension("knativeerrorcode", 503) }, true},
		"with another key":                              {Keys{Current: []byte("new")}, func(*event.Event) {}, false},
		"without a key":                                 {Keys{}, func(*event.Event) {}, false},
		"without a signature":                           {current, func(e *event.Event) { e.SetExtension(Extension, nil) }, false},
		"with a malformed signature":                    {current, func(e *event.Event) { e.SetExtension(Extension, "x") }, false},
		"with other data":                               {current, func(e *event.Event) { e.DataEncoded = []byte(`{"verdict":"pass"}`) }, false},
		"with another id":                               {current, func(e *event.Event) { e.SetID("other") }, false},
		"as a replay":                                   {current, func(e *event.Event) { e.SetExtension(ReplayExtension, "web.1") }, false},
		"with another type":                             {current, func(e *event.Event) { e.SetType("dev.breakwater.order.verdict.v1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.keys.Verify(t.Context(), newEvent(t, tc.edit))
			if (err == nil) != tc.want || err != nil && !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("got %v, want authentic %t", err, tc.want)
			}
		})
	}
}

// The parts of an event are hashed with their lengths.
func TestAPartOfTheIDIsNotMistakenForTheType(t *testing.T) {
	moved := newEvent(t, func(e *event.Event) {
		e.SetType(e.Type() + "i")
		e.SetID("d")
	})
	if err := current.Verify(t.Context(), moved); err == nil {
		t.Error("the event is accepted")
	}
}

func newStore(data map[string][]byte) (*Store, *fake.Clientset, *clocktesting.FakePassiveClock) {
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: VerdictSecretName}, Data: data})
	clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	return NewVerdictStore(client.CoreV1(), clock), client, clock
}

func TestTheKeyIsReadAgainForAnEventThatItDoesNotVerify(t *testing.T) {
	s, client, clock := newStore(map[string][]byte{CurrentKey: []byte("old")})
	if err := s.Sign(t.Context(), new(newEvent(t))); err != nil {
		t.Fatal(err)
	}
	secret, err := client.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), VerdictSecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{CurrentKey: []byte("current"), PreviousKey: []byte("old")}
	if _, err := client.CoreV1().Secrets(v1alpha1.SystemNamespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(minAge))
	if err := s.Verify(t.Context(), newEvent(t)); err != nil {
		t.Errorf("an event signed with the new key: %v", err)
	}
}

func TestEventsOfStrangersCauseOneReadASecond(t *testing.T) {
	another, anotherSecret, anotherClock := newStore(map[string][]byte{CurrentKey: []byte("another")})
	noKey, emptySecret, emptyClock := newStore(nil)
	noSecrets, noClock := fake.NewClientset(), clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	judges := NewJudgeKeys(noSecrets.CoreV1(), noClock)
	for name, tc := range map[string]struct {
		verify func(event.Event) error
		want   error
		client *fake.Clientset
		clock  *clocktesting.FakePassiveClock
	}{
		"another key": {func(e event.Event) error { return another.Verify(t.Context(), e) }, ErrNotAuthentic, anotherSecret, anotherClock},
		"no key yet":  {func(e event.Event) error { return noKey.Verify(t.Context(), e) }, errNoKey, emptySecret, emptyClock},
		"judge that is not installed": {
			func(e event.Event) error { return judges.VerifyJudge(t.Context(), v1alpha1.JudgeMetrics, e) }, ErrNotAuthentic, noSecrets, noClock,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for second := range 2 {
				for range 100 {
					if err := tc.verify(newEvent(t)); !errors.Is(err, tc.want) {
						t.Fatalf("got %v", err)
					}
				}
				if got := len(tc.client.Actions()); got != second+1 {
					t.Errorf("%d reads in %d seconds", got, second+1)
				}
				tc.clock.SetTime(tc.clock.Now().Add(minAge))
			}
		})
	}
}

// Any pod can send the event that causes the read.
func TestAKeyThatIsMissingDoesNotReplaceOneThatIsKnown(t *testing.T) {
	s, client, clock := newStore(map[string][]byte{CurrentKey: current.Current})
	if err := s.Verify(t.Context(), newEvent(t)); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Secrets(v1alpha1.SystemNamespace).Delete(t.Context(), VerdictSecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(minAge))
	forged := newEvent(t, func(e *event.Event) { e.SetID("other") })
	if err := s.Verify(t.Context(), forged); !apierrors.IsNotFound(err) {
		t.Errorf("a forged event: %v", err)
	}
	if err := s.Verify(t.Context(), newEvent(t)); err != nil {
		t.Errorf("an event signed with the known key: %v", err)
	}
}

func TestWithoutAKeyNothingIsDecided(t *testing.T) {
	s, _, _ := newStore(nil)
	if err := s.Verify(t.Context(), newEvent(t)); !errors.Is(err, errNoKey) {
		t.Errorf("got %v", err)
	}
	if err := s.Sign(t.Context(), new(newEvent(t))); !errors.Is(err, errNoKey) {
		t.Errorf("got %v", err)
	}
}
