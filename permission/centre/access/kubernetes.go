package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// reviewed is how long an answer about a token is believed.
const (
	reviewed    = time.Minute
	maxReviewed = 10_000
)

// Kubernetes asks the API server of its own cluster whose a token is.
type Kubernetes struct {
	client   kubernetes.Interface
	audience string
	clock    clock.PassiveClock

	mu    sync.Mutex
	known map[[sha256.Size]byte]review
}

type review struct {
	user  User
	ok    bool
	until time.Time
}

// NewKubernetes asks with a client for tokens of an audience.
func NewKubernetes(client kubernetes.Interface, audience string, c clock.PassiveClock) *Kubernetes {
	return &Kubernetes{client: client, audience: audience, clock: c, known: map[[sha256.Size]byte]review{}}
}

// Authenticate reviews the token, or remembers that it did a moment ago.
func (k *Kubernetes) Authenticate(ctx context.Context, token string) (User, bool, error) {
	key, now := sha256.Sum256([]byte(token)), k.clock.Now()
	k.mu.Lock()
	known, found := k.known[key]
	k.mu.Unlock()
	if found && now.Before(known.until) {
		return known.user, known.ok, nil
	}
	answer, err := k.client.AuthenticationV1().TokenReviews().Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{k.audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return User{}, false, fmt.Errorf("review the token: %w", err)
	}
	r := review{until: now.Add(reviewed)}
	for _, a := range answer.Status.Audiences {
		r.ok = r.ok || a == k.audience && answer.Status.Authenticated
	}
	if r.ok {
		r.user = User{Name: answer.Status.User.Username, Groups: answer.Status.User.Groups}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxReviewed {
		clear(k.known)
	}
	k.known[key] = r
	return r.user, r.ok, nil
}
