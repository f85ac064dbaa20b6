package eventsigning

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The Secrets of the controller's keys, in SystemNamespace, and their keys.
const (
	// VerdictSecretName is the Secret with the key of verdicts of the server.
	VerdictSecretName = "verdict-signing-key"
	// EventSecretName is the Secret with the key of all other events of the controller. Functions
	// that verify these events cannot sign verdicts with it.
	EventSecretName = "event-signing-key"
	CurrentKey      = "key"
	PreviousKey     = "key-previous"
)

const (
	// maxAge is how long a read key is used.
	maxAge = 30 * time.Second
	// minAge is how long a read key is used although it does not verify an event, and how long a key
	// counts as missing. Otherwise each event of an unknown sender would cause a read.
	minAge = time.Second
)

// errNoKey reports that the controller has not made a key yet.
var errNoKey = errors.New("the Secret has no key yet; the controller writes it")

// Store signs and verifies with the keys of the Secret.
type Store struct {
	secrets corev1client.SecretsGetter
	name    string
	clock   clock.PassiveClock

	mu   sync.Mutex
	keys Keys
	read time.Time
	// missing is the error of a read at missed that found no key.
	missing error
	missed  time.Time
}

// NewVerdictStore returns a Store of the key of verdicts of the server.
func NewVerdictStore(secrets corev1client.SecretsGetter, clock clock.PassiveClock) *Store {
	return NewNamedStore(secrets, VerdictSecretName, clock)
}

// NewEventStore returns a Store of the key of the other events of the controller.
func NewEventStore(secrets corev1client.SecretsGetter, clock clock.PassiveClock) *Store {
	return NewNamedStore(secrets, EventSecretName, clock)
}

// NewNamedStore returns a Store of the key of another Secret in SystemNamespace.
func NewNamedStore(secrets corev1client.SecretsGetter, name string, clock clock.PassiveClock) *Store {
	return &Store{secrets: secrets, name: name, clock: clock}
}

// Sign signs an event. It fails while the key cannot be read.
func (s *Store) Sign(ctx context.Context, e *event.Event) error {
	keys, err := s.keysOf(ctx, maxAge)
	if err != nil {
		return err
	}
	return keys.Sign(ctx, e)
}

// Verify verifies the signature of an event. The error is ErrNotAuthentic, or transient.
func (s *Store) Verify(ctx context.Context, e event.Event) error {
	for _, age := range []time.Duration{maxAge, minAge} { // the key may be new
		keys, err := s.keysOf(ctx, age)
		if err != nil {
			return err
		}
		if keys.Verify(ctx, e) == nil {
			return nil
		}
	}
	return ErrNotAuthentic
}

// keysOf returns the keys, read less than age ago. mu stays locked during the read,
// so that concurrent callers share it.
func (s *Store) keysOf(ctx context.Context, age time.Duration) (Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if !s.read.IsZero() && now.Sub(s.read) < age {
		return s.keys, nil
	}
	if s.missing != nil && now.Sub(s.missed) < minAge {
		return Keys{}, s.missing
	}
	keys, err := s.readKeys(ctx)
	if apierrors.IsNotFound(err) || errors.Is(err, errNoKey) {
		s.missing, s.missed = err, now
	}
	if err != nil {
		return Keys{}, err
	}
	s.keys, s.read = keys, now
	return keys, nil
}

// readKeys reads the keys.
func (s *Store) readKeys(ctx context.Context) (Keys, error) {
	secret, err := s.secrets.Secrets(v1alpha1.SystemNamespace).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return Keys{}, fmt.Errorf("get Secret %s: %w", s.name, err)
	}
	keys := Keys{Current: secret.Data[CurrentKey], Previous: secret.Data[PreviousKey]}
	if len(keys.Current) == 0 {
		return Keys{}, fmt.Errorf("get Secret %s: %w", s.name, errNoKey)
	}
	return keys, nil
}
