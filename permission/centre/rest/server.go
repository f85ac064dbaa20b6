// Package rest is the centre's REST interface: it says who asks, whether they
// may, and hands over to packages registry and work.
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

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/authlimit"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// maxBody bounds a request: a page of 5000 pods with two addresses each.
	maxBody = "2M"
	// maxWait bounds a long poll.
	maxWait = time.Minute
)

// Server answers requests. All fields are needed.
type Server struct {
	Store          *store.Store
	Registry       *registry.Registry
	Engine         *lifecycle.Engine
	Hub            *lifecycle.Hub
	Authenticators []access.Authenticator
	Roles          access.Roles
	Clock          clock.Clock
	Log            *slog.Logger
	// Observe counts a request by its route.
	Observe func(method, route string, status int, took time.Duration)
	// Stopping is closed when long polls are to end.
	Stopping <-chan struct{}
	// Refusals bounds what each address may be refused.
	Refusals *authlimit.Limit
}

// Handler routes requests.
func (s *Server) Handler() http.Handler { return s.router() }

// Routes are methods and paths, as an OpenAPI document writes them.
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
	e.HTTPErrorHandler = s.answerError
	e.Use(s.observe, s.Refusals.Middleware, middleware.Recover(), middleware.BodyLimit(maxBody))
	e.GET("/v1/openapi.json", openAPI)
	v1 := e.Group("/v1", s.authenticate)

	register(v1.Group("/providers"), s, s.Registry.Providers(), providerRules(s))
	register(v1.Group("/permissions"), s, s.Registry.Permissions(), permissionRules(s))
	register(v1.Group("/permissionsets"), s, s.Registry.Sets(), setRules(s))
	v1.GET("/audit", s.audit)

	v1.POST("/applications", s.ask)
	v1.GET("/applications", s.list)
	v1.POST("/applications/revoke", s.revokePod)
	v1.GET("/applications/:id", s.get)
	v1.GET("/applications/:id/history", s.history)
	v1.POST("/applications/:id/revoke", s.revoke)
	v1.POST("/applications/:id/reset", s.reset)
	v1.POST("/clusters/:cluster/pods/reconcile", s.report)
	return e
}

// observe counts and logs; a request's body is nobody's business.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := s.Clock.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		took := s.Clock.Since(began)
		s.Observe(c.Request().Method, c.Path(), c.Response().Status, took)
		s.Log.Debug("request", "method", c.Request().Method, "route", c.Path(), "status", c.Response().Status, "took", took, "who", who(c))
		return nil
	}
}

// answerError says what is wrong, as an api.Error.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, answer := describe(err)
	if status == http.StatusInternalServerError || status == http.StatusServiceUnavailable {
		s.Log.Error("request", "method", c.Request().Method, "route", c.Path(), "error", err)
	}
	if status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="permission-centre"`)
	}
	_ = c.JSON(status, answer)
}

// describe maps errors to answers, in one place.
func describe(err error) (int, api.Error) {
	var (
		invalid    registry.Invalid
		refusal    lifecycle.Refusal
		noSet      lifecycle.NoSet
		notAllowed lifecycle.NotAllowed
		referenced registry.Referenced
		taken      registry.Taken
		forbidden  access.Forbidden
		own        problem
		routing    *echo.HTTPError
	)
	switch {
	case errors.As(err, &own):
		return own.status, own.answer
	case errors.As(err, &invalid):
		return http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: invalid.Error(), Field: invalid.Field}
	case errors.As(err, &refusal):
		return http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: refusal.Error(), Field: refusal.Field}
	case errors.As(err, &noSet):
		return http.StatusNotFound, api.Error{Reason: "NotFound", Message: noSet.Error(), Field: "set"}
	case errors.As(err, &notAllowed):
		return http.StatusForbidden, api.Error{Reason: "Forbidden", Message: notAllowed.Error(), Field: "set"}
	case errors.As(err, &forbidden):
		return http.StatusForbidden, api.Error{Reason: "Forbidden", Message: forbidden.Error()}
	case errors.As(err, &referenced):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: referenced.Error()}
	case errors.As(err, &taken):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: taken.Error(), Field: "name"}
	case errors.Is(err, lifecycle.ErrGoing):
		return http.StatusConflict, api.Error{Reason: "Conflict", Message: "what was granted is being taken back, or was: ask for it when that is done, if the pod lives"}
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, api.Error{Reason: "NotFound", Message: "there is no such object"}
	case errors.Is(err, store.ErrChanged):
		return http.StatusPreconditionFailed, api.Error{Reason: "PreconditionFailed",
			Message: "If-Match names a version that is not current; read the object again"}
	case errors.As(err, &routing):
		return routing.Code, api.Error{Reason: word(routing.Code), Message: http.StatusText(routing.Code)}
	default:
		// What went wrong is in the log: it may name what others need not know.
		return http.StatusServiceUnavailable, api.Error{Reason: "Unavailable", Message: "the centre cannot answer now; try again"}
	}
}

func word(status int) string {
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

// problem is an answer of this package's own.
type problem struct {
	status int
	answer api.Error
}

func (p problem) Error() string { return p.answer.Message }

func bad(field, message string) error {
	return problem{http.StatusBadRequest, api.Error{Reason: "BadRequest", Message: field + ": " + message, Field: field}}
}
