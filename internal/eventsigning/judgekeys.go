package eventsigning

import (
	"context"
	"crypto/hmac"
	"fmt"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The Secrets with the keys of judges other than the server, in SystemNamespace.
const (
	// JudgeSecretName is the Secret with the key of function judge. The key is not in
	// Secret verdict-signing-key, so that function judge cannot read the key with which callback and controller sign.
	JudgeSecretName = "judge-signing-key"
	// ExternalJudgesSecretName has the keys of judges that are not part of Breakwater: a
	// key with the name of the judge, and one with previousSuffix for the key that it replaced.
	ExternalJudgesSecretName = "external-judge-keys"
	previousSuffix           = ".previous"
	// minJudgeKeyBytes is the minimum length of the key of a judge: a shorter one can be
	// guessed.
	minJudgeKeyBytes = 32
)

// JudgeKeys verifies the signatures of judges other than the server. The key of one judge
// never verifies the verdict of another.
type JudgeKeys struct {
	function *Store
	secrets  corev1client.SecretsGetter
	clock    clock.PassiveClock

	mu   sync.Mutex
	keys map[string][]byte
	read time.Time
}

// NewJudgeKeys returns JudgeKeys.
func NewJudgeKeys(secrets corev1client.SecretsGetter, clock clock.PassiveClock) *JudgeKeys {
	return &JudgeKeys{function: NewNamedStore(secrets, JudgeSecretName, clock), secrets: secrets, clock: clock}
}

// VerifyJudge verifies that the judge signed an event. The error is ErrNotAuthentic, wrapped
// with the cause, or transient.
func (j *JudgeKeys) VerifyJudge(ctx context.Context, judge string, e event.Event) error {
	if judge == v1alpha1.JudgeMetrics {
		err := j.function.Verify(ctx, e)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: function judge (config/judge) is not installed", ErrNotAuthentic)
		}
		return err
	}
	var err error
	for _, age := range []time.Duration{maxAge, minAge} { // the key may be new
		var keys map[string][]byte
		if keys, err = j.keysOf(ctx, age); err != nil {
			return err
		}
		if err = verifyJudge(ctx, keys, judge, e); err == nil {
			return nil
		}
	}
	return err
}

// verifyJudge verifies an event with the keys of a judge.
func verifyJudge(ctx context.Context, keys map[string][]byte, judge string, e event.Event) error {
	if err := CheckJudgeKeys(keys, judge); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAuthentic, err)
	}
	return Keys{Current: keys[judge], Previous: keys[judge+previousSuffix]}.Verify(ctx, e)
}

// CheckJudgeKeys returns the mistake in the keys of a judge in Secret ExternalJudgesSecretName for which
// each of its verdicts is rejected; nil if there is none.
func CheckJudgeKeys(keys map[string][]byte, judge string) error {
	if len(keys[judge]) == 0 {
		return fmt.Errorf("key %q is missing in Secret %s", judge, ExternalJudgesSecretName)
	}
	for _, own := range []string{judge, judge + previousSuffix} {
		switch n := len(keys[own]); {
		case n == 0:
			continue
		case n < minJudgeKeyBytes:
			return fmt.Errorf("key %q of Secret %s is shorter than %d bytes", own, ExternalJudgesSecretName, minJudgeKeyBytes)
		}
		for name, key := range keys {
			if name != judge && name != judge+previousSuffix && hmac.Equal(keys[own], key) {
				return fmt.Errorf("%q and %q of Secret %s have the same key, so one judge could sign for the other", own, name, ExternalJudgesSecretName)
			}
		}
	}
	return nil
}

// keysOf returns the keys of judges, read less than age ago. Without the Secret there are
// none.
func (j *JudgeKeys) keysOf(ctx context.Context, age time.Duration) (map[string][]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.clock.Now()
	if !j.read.IsZero() && now.Sub(j.read) < age {
		return j.keys, nil
	}
	secret, err := j.secrets.Secrets(v1alpha1.SystemNamespace).Get(ctx, ExternalJudgesSecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", ExternalJudgesSecretName, err)
	}
	j.keys, j.read = secret.Data, now
	return j.keys, nil
}
