// Package rest is the REST interface of the permission centre. It authenticates
// and authorizes requests, validates them, and calls packages registry and
// lifecycle. An error is answered with an api.Error. If a field of the request is
// invalid, the error names the field.
package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/authlimit"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/permission/notifier"
)

const (
	// maxBody bounds a request body: a report of 5000 pods with two addresses each.
	maxBody = "2M"
	// maxWait bounds the duration of a long poll.
	maxWait = time.Minute
)

// Server serves the REST interface. All fields are required.
type Server struct {
	Store          *store.Store
	Registry       *registry.Registry
	Engine         *lifecycle.Engine
	Notifier       *notifier.Notifier
	Authenticators []access.Authenticator
	Roles          access.Roles
	Clock          clock.Clock
	Log            *slog.Logger
	// Observe records the metrics of a request.
	Observe func(method, route string, status int, took time.Duration)
	// Stopping is closed to end long polls.
	Stopping <-chan struct{}
	// AuthLimit rate-limits addresses after failed authentication.
	AuthLimit *authlimit.Limiter
}

// Handler returns the HTTP handler.
func (s *Server) Handler() http.Handler { return s.router() }

// Routes returns the method and path of each route in the form of OpenAPI.
func (s *Server) Routes() []string {
	var routes []string
	for _, r := range s.router().Routes() {
		if r.Method == echo.RouteNotFound {
			continue
		}
		var path []string
		for segment := range strings.SplitSeq(r.Path, "/") {
			if name, ok := strings.CutPrefix(segment, ":"); ok {
				segment = "{" + name + "}"
			}
			path = append(path, segment)
		}
		routes = append(routes, r.Method+" "+strings.Join(path, "/"))
	}
	return routes
}

func (s *Server) router() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.handleError
	e.Use(s.observe, s.AuthLimit.Middleware, middleware.Recover(), middleware.BodyLimit(maxBody))
	e.GET("/v1/openapi.json", openAPI)
	v1 := e.Group("/v1", s.authenticate, storableQuery)

	register(v1.Group("/providers"), s, s.Registry.Providers(), providerRules(s))
	register(v1.Group("/permissions"), s, s.Registry.Permissions(), permissionRules(s))
	register(v1.Group("/permissionsets"), s, s.Registry.Sets(), setRules(s))
	v1.POST("/providers/:name/acknowledge", s.acknowledgeProvider)
	v1.GET("/audit", s.listAudit)

	v1.POST("/applications", s.createApplication)
	v1.GET("/applications", s.listApplications)
	v1.POST("/applications/revoke", s.revokePod)
	v1.GET("/applications/:id", s.getApplication)
	v1.GET("/applications/:id/history", s.applicationHistory)
	v1.POST("/applications/:id/revoke", s.revokeApplication)
	v1.POST("/applications/:id/reset", s.resetApplication)
	v1.POST("/applications/:id/acknowledge", s.acknowledgeApplication)
	v1.GET("/clusters/:cluster", s.getCluster)
	v1.POST("/clusters/:cluster/pods/reconcile", s.reconcilePods)
	v1.POST("/clusters/:cluster/pods/confirm", s.confirmReport)
	return e
}

// observe records metrics and logs the request without its body.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := s.Clock.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		took := s.Clock.Since(began)
		s.Observe(c.Request().Method, c.Path(), c.Response().Status, took)
		s.Log.Debug("request", "method", c.Request().Method, "route", c.Path(), "status", c.Response().Status, "took", took, "user", userName(c))
		return nil
	}
}

// handleError answers with an api.Error.
func (s *Server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, body := toAPIError(err)
	var issuer access.IssuerUnreachable // is logged once, not for each token
	if (status == http.StatusInternalServerError || status == http.StatusServiceUnavailable) && !errors.As(err, &issuer) {
		s.Log.Error("request failed", "method", c.Request().Method, "route", c.Path(), "error", err)
	}
	if status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="permission-centre"`)
	}
	_ = c.JSON(status, body)
}

// toAPIError maps an error to a status and a body.
func toAPIError(err error) (int, api.Error) {
	var (
		invalid        registry.Invalid
		invalidRequest lifecycle.InvalidRequest
		notRegistered  lifecycle.NotRegistered
		notAllowed     lifecycle.NotAllowed
		otherCluster   lifecycle.OtherCluster
		inUse          registry.InUse
		exists         registry.AlreadyExists
		forbidden      access.Forbidden
		issuer         access.IssuerUnreachable
		reserved       access.ReservedName
		own            apiError
		routing        *echo.HTTPError
	)
	switch {
	case errors.As(err, &own):
		return own.status, own.body
	case errors.As(err, &invalid):
		return http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: invalid.Error(), Field: invalid.Field}
	case errors.As(err, &invalidRequest):
		return http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: invalidRequest.Error(), Field: invalidRequest.Field}
	case errors.As(err, &notRegistered):
		return http.StatusNotFound, api.Error{Reason: "NotFound", Message: notRegistered.Error(), Field: "set"}
	case errors.As(err, &notAllowed):
		return http.StatusForbidden, api.Error{Reason: "Forbidden", Message: notAllowed.Error(), Field: "set"}
	case errors.As(err, &forbidden):
		return http.StatusForbidden, api.Error{Reason: "Forbidden", Message: forbidden.Error()}
	case errors.As(err, &issuer):
		return http.StatusServiceUnavailable, api.Error{Reason: "Unavailable", Message: issuer.Error()}
	case errors.As(err, &reserved):
		return http.StatusUnauthorized, api.Error{Reason: "Unauthorized", Message: "unauthenticated: " + reserved.Error()}
	case errors.As(err, &otherCluster):
		return http.StatusForbidden, api.Error{Reason: "Forbidden", Message: otherCluster.Error(), Field: "clusterUID"}
	case errors.As(err, &inUse):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: inUse.Error()}
	case errors.As(err, &exists):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: exists.Error(), Field: "name"}
	case errors.Is(err, lifecycle.ErrRevokeRequested):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: "the application is being revoked, or its pod has ended; if the pod still exists, request it again when state is Revoked or Leaked"}
	case errors.Is(err, lifecycle.ErrResetAfterRevocation):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: err.Error() + ", so a reset begins no attempt; a request of its pod does, if the pod still exists"}
	case errors.Is(err, lifecycle.ErrCallActive):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: err.Error() + "; retry when the call has ended"}
	case errors.Is(err, lifecycle.ErrRevocationAccepted):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: err.Error() +
			"; retry when it is revoked, or remove the grant at the provider and acknowledge the leak"}
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, api.Error{Reason: "NotFound", Message: "the object does not exist"}
	case errors.Is(err, store.ErrConflict):
		return http.StatusPreconditionFailed, api.Error{Reason: "PreconditionFailed",
			Message: "If-Match is not the current version; read the object again"}
	case errors.As(err, &routing):
		return routing.Code, api.Error{Reason: reasonFor(routing.Code), Message: http.StatusText(routing.Code)}
	default:
		// The error may contain internal names, so it is only logged.
		return http.StatusServiceUnavailable, api.Error{Reason: "Unavailable", Message: "the permission centre is temporarily unavailable; try again"}
	}
}

func reasonFor(status int) string {
	switch status {
	case http.StatusNotFound:
		return "NotFound"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case http.StatusRequestEntityTooLarge:
		return "TooLarge"
	default:
		return "BadRequest"
	}
}

// apiError is an error of this package with its status.
type apiError struct {
	status int
	body   api.Error
}

func (p apiError) Error() string { return p.body.Message }

func badRequest(field, message string) error {
	return apiError{http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: field + ": " + message, Field: field}}
}
