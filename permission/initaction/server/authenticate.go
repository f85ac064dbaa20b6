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

// What a review says of a token that is bound to a pod.
const (
	extraPodName         = "authentication.kubernetes.io/pod-name"
	extraPodUID          = "authentication.kubernetes.io/pod-uid"
	serviceAccountPrefix = "system:serviceaccount:"
)

var errInvalidToken = problemf(http.StatusUnauthorized, "Unauthorized", "the token is not known to this cluster, is not for this server, or has expired")

// caller is the pod that asks, as its token says.
type caller struct {
	types.NamespacedName
	uid types.UID
}

// identify returns the pod that the request's token is bound to. The API server
// knows no token of a pod that is gone.
func (s *server) authenticatePod(c echo.Context) (caller, error) {
	user, err := s.reviewToken(c, protocol.TokenAudience)
	if err != nil {
		return caller{}, err
	}
	name, uid := user.Extra[extraPodName], user.Extra[extraPodUID]
	namespace, _, ok := strings.Cut(strings.TrimPrefix(user.Username, serviceAccountPrefix), ":")
	if !strings.HasPrefix(user.Username, serviceAccountPrefix) || !ok || len(name) != 1 || len(uid) != 1 || name[0] == "" || uid[0] == "" {
		return caller{}, problemf(http.StatusForbidden, "NotAPod", "the token is not bound to a pod")
	}
	return caller{types.NamespacedName{Namespace: namespace, Name: name[0]}, types.UID(uid[0])}, nil
}

// A token that was refused is refused for so long without another review, and so
// many are remembered. What is known is never remembered: its pod may be gone.
const (
	rejectedTokenTTL  = 5 * time.Second
	maxRejectedTokens = 10_000
)

// review asks the API server whose token it is. Without an audience it has to be
// one for the API server.
func (s *server) reviewToken(c echo.Context, audience string) (authenticationv1.UserInfo, error) {
	var nobody authenticationv1.UserInfo
	token := auth.Bearer(c.Request())
	if token == "" {
		return nobody, problemf(http.StatusUnauthorized, "Unauthorized", "send a token: header Authorization: Bearer ...")
	}
	seen := sha256.Sum256([]byte(audience + " " + token))
	if _, found := s.rejectedTokens.Get(seen); found {
		return nobody, errInvalidToken
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if audience != "" {
		review.Spec.Audiences = []string{audience}
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), callTimeout)
	defer cancel()
	review, err := s.Kube.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nobody, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		s.rejectedTokens.Add(seen, true, rejectedTokenTTL)
		return nobody, errInvalidToken
	}
	if audience != "" && len(review.Status.Audiences) == 0 {
		// An authenticator that knows nothing of audiences did not check it.
		return nobody, problemf(http.StatusUnauthorized, "Unauthorized", "the token is not for this server")
	}
	return review.Status.User, nil
}
