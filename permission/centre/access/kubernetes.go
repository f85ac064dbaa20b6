package access

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/auth"
)

// reviewTTL is how long the result of a TokenReview is cached.
const reviewTTL = time.Minute

// Kubernetes authenticates tokens by TokenReviews in the centre's own cluster.
type Kubernetes struct {
	tokens *auth.Tokens
}

// NewKubernetes returns an authenticator for tokens of an audience.
func NewKubernetes(client kubernetes.Interface, audience string, c clock.PassiveClock) *Kubernetes {
	return &Kubernetes{auth.NewTokens(client.AuthenticationV1(), auth.TokensOptions{
		Audience: audience, AcceptedTTL: reviewTTL, RejectedTTL: reviewTTL, Clock: c,
	})}
}

// Authenticate returns the user of a token; false for a rejected token.
func (k *Kubernetes) Authenticate(ctx context.Context, token string) (User, bool, error) {
	user, err := k.tokens.User(ctx, token)
	if errors.Is(err, auth.ErrTokenRejected) {
		return User{}, false, nil
	}
	return User{Name: user.Username, Groups: user.Groups}, err == nil, err
}
