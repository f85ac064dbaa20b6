package access

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/auth"
)

const (
	// acceptedTTL is how long an accepted token is cached.
	acceptedTTL = time.Minute
	// rejectedTTL is how long a rejected token is cached. It is short: the API server also rejects a valid token
	// while it cannot read the ServiceAccount or pod of it.
	rejectedTTL = 5 * time.Second
)

// Kubernetes authenticates tokens by TokenReviews in the centre's own cluster.
type Kubernetes struct {
	tokens *auth.Tokens
}

// NewKubernetes returns an authenticator for tokens of an audience.
func NewKubernetes(client kubernetes.Interface, audience string, c clock.PassiveClock) *Kubernetes {
	return &Kubernetes{auth.NewTokens(client.AuthenticationV1(), auth.TokensOptions{
		Audience: audience, AcceptedTTL: acceptedTTL, RejectedTTL: rejectedTTL, Clock: c,
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
