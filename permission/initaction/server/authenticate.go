package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// The extra fields of a TokenReview for a token that is bound to a pod.
const (
	extraPodName         = "authentication.kubernetes.io/pod-name"
	extraPodUID          = "authentication.kubernetes.io/pod-uid"
	serviceAccountPrefix = "system:serviceaccount:"
)

// podIdentity is the pod to which the token is bound.
type podIdentity struct {
	types.NamespacedName
	uid types.UID
}

// authenticatePod returns the pod to which the request's token is bound. The API
// server rejects tokens of deleted pods.
func (s *server) authenticatePod(c echo.Context) (podIdentity, error) {
	owner, err := s.authenticate(c)
	if err != nil {
		return podIdentity{}, err
	}
	name, uid := owner.Extra[extraPodName], owner.Extra[extraPodUID]
	namespace, _, ok := strings.Cut(strings.TrimPrefix(owner.Username, serviceAccountPrefix), ":")
	if !strings.HasPrefix(owner.Username, serviceAccountPrefix) || !ok || len(name) != 1 || len(uid) != 1 || name[0] == "" || uid[0] == "" {
		return podIdentity{}, problemf(http.StatusForbidden, "TokenNotBoundToPod", "the token is not bound to a pod")
	}
	// A user may request any number of tokens for a pod.
	if err := s.limitRequests(c, "pod", uid[0]); err != nil {
		return podIdentity{}, err
	}
	return podIdentity{types.NamespacedName{Namespace: namespace, Name: name[0]}, types.UID(uid[0])}, nil
}

// rejectedTokenTTL is how long rejected tokens are cached. Accepted tokens are not
// cached, because their pod may be deleted.
const rejectedTokenTTL = 5 * time.Second

// requestsPerMinute is how many requests a token, and a pod, may send per minute to this replica, because each may cost the
// API server a TokenReview and a read of the pod. The client sends about ten in the first minute, and then about five; a
// person may reset many pods with one token.
const requestsPerMinute = 300

// limitRequests counts a request of a sender, or returns an answer 429.
func (s *server) limitRequests(c echo.Context, sender, key string) error {
	return s.requestLimit.Count(c, key, "this "+sender+" sent too many requests; retry later")
}

// authenticate returns the user of the request's token.
func (s *server) authenticate(c echo.Context) (authenticationv1.UserInfo, error) {
	var none authenticationv1.UserInfo
	token := auth.BearerToken(c.Request())
	if token == "" {
		return none, problemf(http.StatusUnauthorized, "Unauthorized", "the request has no header Authorization: Bearer <token>")
	}
	hash := sha256.Sum256([]byte(token))
	if err := s.limitRequests(c, "token", string(hash[:])); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), apiServerTimeout)
	defer cancel()
	u, err := s.tokens.User(ctx, token)
	if errors.Is(err, auth.ErrTokenRejected) {
		return none, problemf(http.StatusUnauthorized, "Unauthorized", "%s; its audience must be %s", auth.ErrTokenRejected, protocol.TokenAudience)
	} else if err != nil {
		return none, err
	}
	connlimit.Authenticated(c.Request().Context())
	return u, nil
}
