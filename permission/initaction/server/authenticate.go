package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// The extra fields of a TokenReview for a token that is bound to a pod.
const (
	extraPodName         = "authentication.kubernetes.io/pod-name"
	extraPodUID          = "authentication.kubernetes.io/pod-uid"
	serviceAccountPrefix = "system:serviceaccount:"
)

var errInvalidToken = problemf(http.StatusUnauthorized, "Unauthorized", "the token is invalid, has another audience, or has expired")

// podIdentity is the pod to which the token is bound.
type podIdentity struct {
	types.NamespacedName
	uid types.UID
}

// authenticatePod returns the pod to which the request's token is bound. The API
// server rejects tokens of deleted pods.
func (s *server) authenticatePod(c echo.Context) (podIdentity, error) {
	user, err := s.reviewToken(c, protocol.TokenAudience)
	if err != nil {
		return podIdentity{}, err
	}
	name, uid := user.Extra[extraPodName], user.Extra[extraPodUID]
	namespace, _, ok := strings.Cut(strings.TrimPrefix(user.Username, serviceAccountPrefix), ":")
	if !strings.HasPrefix(user.Username, serviceAccountPrefix) || !ok || len(name) != 1 || len(uid) != 1 || name[0] == "" || uid[0] == "" {
		return podIdentity{}, problemf(http.StatusForbidden, "TokenNotBoundToPod", "the token is not bound to a pod")
	}
	return podIdentity{types.NamespacedName{Namespace: namespace, Name: name[0]}, types.UID(uid[0])}, nil
}

// Rejected tokens are cached for rejectedTokenTTL. Accepted tokens are not cached,
// because their pod may be deleted.
const (
	rejectedTokenTTL  = 5 * time.Second
	maxRejectedTokens = 10_000
)

// reviewToken authenticates the request's token at the API server. An empty audience
// means the audience of the API server.
func (s *server) reviewToken(c echo.Context, audience string) (authenticationv1.UserInfo, error) {
	var none authenticationv1.UserInfo
	token := auth.BearerToken(c.Request())
	if token == "" {
		return none, problemf(http.StatusUnauthorized, "Unauthorized", "the request has no header Authorization: Bearer <token>")
	}
	hash := sha256.Sum256([]byte(audience + " " + token))
	if _, found := s.rejectedTokens.Get(hash); found {
		return none, errInvalidToken
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if audience != "" {
		review.Spec.Audiences = []string{audience}
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), callTimeout)
	defer cancel()
	review, err := s.Kube.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return none, fmt.Errorf("create a TokenReview: %w", err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		s.rejectedTokens.Add(hash, true, rejectedTokenTTL)
		return none, errInvalidToken
	}
	if audience != "" && len(review.Status.Audiences) == 0 {
		// An authenticator without support for audiences did not check the audience.
		return none, problemf(http.StatusUnauthorized, "Unauthorized", "the token has another audience")
	}
	return review.Status.User, nil
}
