package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

const (
	// reviewTTL is how long the result of a TokenReview is cached.
	reviewTTL = time.Minute
	// maxReviews is the size of the LRU cache.
	maxReviews = 10_000
)

// Kubernetes authenticates tokens by TokenReviews in the centre's own cluster.
type Kubernetes struct {
	client   kubernetes.Interface
	audience string
	// reviews caches results by the hash of the token.
	reviews *cache.LRUExpireCache
}

type review struct {
	user User
	ok   bool
}

// NewKubernetes returns an authenticator for tokens of an audience.
func NewKubernetes(client kubernetes.Interface, audience string, c clock.PassiveClock) *Kubernetes {
	return &Kubernetes{client: client, audience: audience, reviews: cache.NewLRUExpireCacheWithClock(maxReviews, c)}
}

// Authenticate reviews the token or returns a cached result.
func (k *Kubernetes) Authenticate(ctx context.Context, token string) (User, bool, error) {
	key := sha256.Sum256([]byte(token))
	if cached, ok := k.reviews.Get(key); ok {
		r := cached.(review)
		return r.user, r.ok, nil
	}
	answer, err := k.client.AuthenticationV1().TokenReviews().Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{k.audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return User{}, false, fmt.Errorf("create TokenReview: %w", err)
	}
	var r review
	for _, a := range answer.Status.Audiences {
		r.ok = r.ok || a == k.audience && answer.Status.Authenticated
	}
	if r.ok {
		r.user = User{Name: answer.Status.User.Username, Groups: answer.Status.User.Groups}
	}
	k.reviews.Add(key, r, reviewTTL)
	return r.user, r.ok, nil
}
