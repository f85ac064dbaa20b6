package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"
)

// ErrTokenRejected is the error for a token that the API server rejects: invalid,
// expired or for another audience.
var ErrTokenRejected = errors.New("the token is invalid, has another audience, or has expired")

// maxCachedTokens is the size of the LRU cache of a Tokens.
const maxCachedTokens = 10_000

// TokensOptions configure a Tokens.
type TokensOptions struct {
	// Audience is the required audience; empty is that of the API server.
	Audience string
	// AcceptedTTL is how long an accepted token is cached; 0 disables the cache. A
	// cached token stays accepted after its pod or ServiceAccount was deleted.
	AcceptedTTL time.Duration
	// RejectedTTL is how long a rejected token is cached; 0 disables the cache.
	RejectedTTL time.Duration
	Clock       clock.PassiveClock
}

// Tokens authenticates bearer tokens by TokenReviews.
type Tokens struct {
	client  authenticationclient.TokenReviewsGetter
	options TokensOptions
	// cache has a *UserInfo by the hash of the token; nil for a rejected token.
	cache *cache.LRUExpireCache
}

// NewTokens returns a Tokens.
func NewTokens(client authenticationclient.TokenReviewsGetter, o TokensOptions) *Tokens {
	return &Tokens{client, o, cache.NewLRUExpireCacheWithClock(maxCachedTokens, o.Clock)}
}

// User returns the user of a token, or ErrTokenRejected. Other errors are those of
// the API server and are not cached.
func (t *Tokens) User(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	hash := sha256.Sum256([]byte(token))
	if cached, found := t.cache.Get(hash); found {
		return result(cached.(*authenticationv1.UserInfo))
	}
	user, err := t.review(ctx, token)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	ttl := t.options.AcceptedTTL
	if user == nil {
		ttl = t.options.RejectedTTL
	}
	if ttl > 0 {
		t.cache.Add(hash, user, ttl)
	}
	return result(user)
}

func result(user *authenticationv1.UserInfo) (authenticationv1.UserInfo, error) {
	if user == nil {
		return authenticationv1.UserInfo{}, ErrTokenRejected
	}
	return *user, nil
}

// review returns nil for a rejected token.
func (t *Tokens) review(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	var audiences []string
	if t.options.Audience != "" {
		audiences = []string{t.options.Audience}
	}
	review, err := t.client.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create TokenReview: %w", err)
	}
	status := review.Status
	if !status.Authenticated || status.User.Username == "" {
		return nil, nil
	}
	// An authenticator without support for audiences returns none: it did not check.
	if t.options.Audience != "" && !slices.Contains(status.Audiences, t.options.Audience) {
		return nil, nil
	}
	return &status.User, nil
}
