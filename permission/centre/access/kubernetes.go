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
	// reviewed is how long an answer about a token is believed.
	reviewed = time.Minute
	// maxReviewed is how many answers are kept, the last used ones.
	maxReviewed = 10_000
)

// Kubernetes asks the API server of its own cluster whose a token is.
type Kubernetes struct {
	client   kubernetes.Interface
	audience string
	// known has reviews by the hash of the token.
	known *cache.LRUExpireCache
}

type review struct {
	user User
	ok   bool
}

// NewKubernetes asks with a client for tokens of an audience.
func NewKubernetes(client kubernetes.Interface, audience string, c clock.PassiveClock) *Kubernetes {
	return &Kubernetes{client: client, audience: audience, known: cache.NewLRUExpireCacheWithClock(maxReviewed, c)}
}

// Authenticate reviews the token, or remembers that it did a moment ago.
func (k *Kubernetes) Authenticate(ctx context.Context, token string) (User, bool, error) {
	key := sha256.Sum256([]byte(token))
	if known, ok := k.known.Get(key); ok {
		r := known.(review)
		return r.user, r.ok, nil
	}
	answer, err := k.client.AuthenticationV1().TokenReviews().Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{k.audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return User{}, false, fmt.Errorf("review the token: %w", err)
	}
	var r review
	for _, a := range answer.Status.Audiences {
		r.ok = r.ok || a == k.audience && answer.Status.Authenticated
	}
	if r.ok {
		r.user = User{Name: answer.Status.User.Username, Groups: answer.Status.User.Groups}
	}
	k.known.Add(key, r, reviewed)
	return r.user, r.ok, nil
}
