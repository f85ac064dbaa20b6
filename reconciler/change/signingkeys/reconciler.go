// Package signingkeys makes the keys that sign events (internal/eventsigning), and
// replaces them regularly: one key for verdicts of the server, one for the other events of
// the controller and, if config/judge is installed, one for verdicts of function judge.
package signingkeys

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const (
	queueName = "signingkeys"
	// timeKey is the key of the Secret with the time at which its key was made.
	timeKey = "time"
	// keyLife is how long a key signs events. For the same time after that it still verifies
	// them, which is longer than a Broker retries an event.
	keyLife = 30 * 24 * time.Hour
	// checkInterval is the longest time between two checks of the Secrets.
	checkInterval = time.Minute
	keyBytes      = 32
)

// key is the key of all Secrets in the queue.
var key = types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: eventsigning.VerdictSecretName}

// Reconciler reconciles the Secrets; only the leader does so.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	secrets corev1client.SecretInterface
	clock   clock.PassiveClock
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// NewController returns the controller.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	r := &Reconciler{secrets: kubeclient.Get(ctx).CoreV1().Secrets(v1alpha1.SystemNamespace), clock: clock.RealClock{}}
	r.PromoteFunc = wiring.PromoteKeys(key)
	return controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName), RateLimiter: wiring.RetryWithin(checkInterval),
	})
}

// Reconcile implements controller.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, k string) error {
	if !r.IsLeaderFor(key) {
		return controller.NewSkipKey(k)
	}
	judge := r.refresh(ctx, eventsigning.JudgeSecretName)
	if apierrs.IsNotFound(judge) {
		judge = nil // config/judge is not installed
	}
	// Without one key the others are made.
	if err := errors.Join(r.refresh(ctx, eventsigning.VerdictSecretName), r.refresh(ctx, eventsigning.EventSecretName), judge); err != nil {
		return err
	}
	return controller.NewRequeueAfter(checkInterval)
}

// refresh makes the key of a Secret if it is due.
func (r *Reconciler) refresh(ctx context.Context, name string) error {
	secret, err := r.secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Secret %s: %w", name, err)
	}
	if now := r.clock.Now(); due(secret, now) {
		if err := r.replace(ctx, secret, now); err != nil {
			return err
		}
		logging.FromContext(ctx).Infow("Made a new key for signatures", "secret", name)
	}
	return nil
}

// due reports whether the Secret needs a key: it has none, or one as old as keyLife. A key
// without a readable time was set by a person, who replaces it.
func due(secret *corev1.Secret, now time.Time) bool {
	if len(secret.Data[eventsigning.CurrentKey]) == 0 {
		return true
	}
	made, err := time.Parse(time.RFC3339, string(secret.Data[timeKey]))
	return err == nil && now.Sub(made) >= keyLife
}

// replace writes a new key, and keeps the replaced one. If another writer changed the Secret
// meanwhile, it returns a conflict.
func (r *Reconciler) replace(ctx context.Context, secret *corev1.Secret, now time.Time) error {
	fresh := make([]byte, keyBytes)
	_, _ = rand.Read(fresh) // never fails
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": secret.ResourceVersion},
		"data": map[string][]byte{
			eventsigning.CurrentKey:  fresh,
			eventsigning.PreviousKey: secret.Data[eventsigning.CurrentKey],
			timeKey:                  []byte(now.UTC().Format(time.RFC3339)),
		},
	})
	if err != nil {
		return fmt.Errorf("encode Secret %s: %w", secret.Name, err)
	}
	if _, err := r.secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	return nil
}
