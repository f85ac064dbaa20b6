package rollbackapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// verbRollback is a custom verb on changeworkloads. It allows rollbacks to users
// who may not update the workload.
const verbRollback = "rollback"

// authenticate returns the user of the request's bearer token.
func (s *service) authenticate(c echo.Context) (authenticationv1.UserInfo, error) {
	var nobody authenticationv1.UserInfo
	token := auth.BearerToken(c.Request())
	if token == "" {
		return nobody, problemf(http.StatusUnauthorized,
			"send a Kubernetes token: header Authorization: Bearer $(kubectl create token <service account> --audience "+Audience+")")
	}
	hash := sha256.Sum256([]byte(token))
	if key, found := s.limitKeys.Get(hash); found {
		if err := s.limit.Check(c, key.(string), tooMany(key.(string))); err != nil {
			return nobody, err
		}
	}
	user, err := s.tokens.User(c.Request().Context(), token)
	if errors.Is(err, auth.ErrTokenRejected) {
		return nobody, problemf(http.StatusUnauthorized, "the token is unknown to this cluster, has expired, or has another audience: create it with --audience "+Audience)
	}
	if err != nil {
		return nobody, err
	}
	connlimit.Authenticated(c.Request().Context())
	key := limitKey(user.Username)
	s.limitKeys.Add(hash, key, limitKeyTTL)
	if err := s.limit.Count(c, key, tooMany(key)); err != nil {
		return nobody, err
	}
	return user, nil
}

// limitKey returns whose requests are limited together: those of a user, or of all ServiceAccounts of a namespace, because
// a user with role edit may create any number of them.
func limitKey(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		return "system:serviceaccounts:" + namespace
	}
	return user
}

func tooMany(key string) string { return key + " sent too many requests; retry later" }

// may reports whether the API server authorizes the user.
func (s *service) may(ctx context.Context, user authenticationv1.UserInfo, do authorizationv1.ResourceAttributes) (bool, error) {
	review, err := auth.ReviewAccess(ctx, s.Kube.AuthorizationV1(), user, do)
	if err != nil {
		return false, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	return review.Allowed, nil
}

// mayList returns a problem unless the user may list the workloads.
func (s *service) mayList(ctx context.Context, user authenticationv1.UserInfo, kind workload.Kind, namespace string) error {
	ok, err := s.may(ctx, user, authorizationv1.ResourceAttributes{
		Verb: "list", Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Namespace: namespace,
	})
	if err != nil || ok {
		return err
	}
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces (select one: ?namespace=)"
	}
	return problemf(http.StatusForbidden, "%s may not list %s.%s %s", user.Username, kind.Resource, kind.Group, where)
}

// mayRollBack returns a problem unless the user may update the workload or has
// verbRollback.
func (s *service) mayRollBack(ctx context.Context, user authenticationv1.UserInfo, kind workload.Kind, namespace, name string) error {
	for _, do := range []authorizationv1.ResourceAttributes{
		{Verb: "update", Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Namespace: namespace, Name: name},
		{Verb: verbRollback, Group: v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version,
			Resource: "changeworkloads", Namespace: namespace},
	} {
		if ok, err := s.may(ctx, user, do); err != nil || ok {
			return err
		}
	}
	return problemf(http.StatusForbidden, "%s may neither update %s.%s %s in namespace %s nor %s changeworkloads.%s there: bind ClusterRole breakwater-rollback",
		user.Username, kind.Resource, kind.Group, name, namespace, verbRollback, v1alpha1.GroupName)
}
