package podbreaker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// Breaker stores the entries of all pods. It is safe for concurrent use by any
// number of goroutines and processes.
type Breaker struct {
	namespace string
	lister    corelisters.ConfigMapLister
	commit    *groupcommit.Committer[*corev1.ConfigMap, Request, reply]
	policy    func() Policy
}

// New returns a Breaker with its ConfigMaps in the namespace. The lister may be
// stale. policy is called for each decision.
func New(namespace string, client corev1client.ConfigMapsGetter, lister corelisters.ConfigMapLister, policy func() Policy) *Breaker {
	maps := store{client.ConfigMaps(namespace), lister.ConfigMaps(namespace)}
	decide := func(cm *corev1.ConfigMap, group []Request) groupDecision { return policy().decideGroup(cm, group) }
	return &Breaker{namespace: namespace, lister: lister, policy: policy, commit: groupcommit.New(maps, decide, groupcommit.Options{})}
}

// decideTimeout bounds one call of Do.
const decideTimeout = 10 * time.Second

// Do applies a request and writes the resulting entry.
func (b *Breaker) Do(ctx context.Context, r Request) (Decision, error) {
	// The decision is written even if the caller's context ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideTimeout)
	defer cancel()
	answer, err := b.do(ctx, PrimaryName, r)
	if err == nil && answer.useShard {
		answer, err = b.do(ctx, ShardName(r.Key), r)
	}
	if err == nil && answer.full {
		err = ErrFull
	}
	return answer.Decision, err
}

func (b *Breaker) do(ctx context.Context, name string, r Request) (reply, error) {
	answer, err := b.commit.Do(ctx, types.NamespacedName{Namespace: b.namespace, Name: name}, r)
	if err != nil {
		return reply{}, fmt.Errorf("update ConfigMap %s: %w", name, err)
	}
	return answer, nil
}

// Peek returns the cached entry of a pod, which may be stale, and the state that
// an Acquire by holder would probably have. It writes nothing.
func (b *Breaker) Peek(key string, uid types.UID, now time.Time, holder string) Decision {
	var d Decision
	for _, name := range []string{PrimaryName, ShardName(key)} {
		if cm, err := b.lister.ConfigMaps(b.namespace).Get(name); err == nil {
			if d.Entry, d.Exists = decode(cm.Data[key], uid); d.Exists {
				break
			}
		}
	}
	d.State, d.Next = b.policy().State(d.Entry, now, holder)
	return d
}

// store reads and writes ConfigMaps for groupcommit.
type store struct {
	client corev1client.ConfigMapInterface
	lister corelisters.ConfigMapNamespaceLister
}

func (s store) Cached(key types.NamespacedName) (*corev1.ConfigMap, bool) {
	cm, err := s.lister.Get(key.Name)
	return cm, err == nil
}

// Live reads the ConfigMap from the API server and creates it if it does not exist.
func (s store) Live(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error) {
	cm, err := s.client.Get(ctx, key.Name, metav1.GetOptions{})
	if !apierrs.IsNotFound(err) {
		return cm, err
	}
	cm, err = s.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: key.Name, Labels: map[string]string{Label: "true", "app.kubernetes.io/part-of": "breakwater", "app.kubernetes.io/component": "permission"},
	}}, metav1.CreateOptions{})
	if apierrs.IsAlreadyExists(err) {
		return s.client.Get(ctx, key.Name, metav1.GetOptions{})
	}
	return cm, err
}

func (s store) Swap(ctx context.Context, next *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return s.client.Update(ctx, next, metav1.UpdateOptions{})
}
