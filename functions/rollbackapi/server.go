// Package rollbackapi serves an HTTP API for operators and their tools: it lists
// suspended workloads and records requests to roll one back. It writes one
// annotation only, with the request and its user; the Rollback reconciler executes
// the request.
//
//	GET /openapi/altershield/suspend/deployment?namespace=
//	PUT /openapi/altershield/deployment/rollback
//
// Users authenticate with a Kubernetes bearer token of Audience (TokenReview) and are
// authorized by the roles of the cluster (SubjectAccessReview).
package rollbackapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/otel/metric"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/internal/authlimit"
	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// maxBody is the maximum size of a request, which has a few names only.
	maxBody = "16K"
	// Timeout limits one request.
	Timeout = 20 * time.Second
	// rejectedTokenTTL is how long rejected tokens are cached. Accepted tokens are
	// not cached, because their ServiceAccount may be deleted.
	rejectedTokenTTL = 5 * time.Second
	// unauthenticatedPerMinute is how many requests of an address may be answered 401 in a minute; all
	// of them may come at once. Each may cost the API server a TokenReview.
	unauthenticatedPerMinute = 60
	// requestsPerMinute is how many requests a user, or the ServiceAccounts of a namespace together, may send to this replica
	// in a minute; all of them may come at once. Each costs the API server a TokenReview and a SubjectAccessReview.
	requestsPerMinute = 600
	// maxLimitKeys is the number of tokens whose key of the limit is cached, and limitKeyTTL is for how long.
	maxLimitKeys, limitKeyTTL = 10_000, 10 * time.Minute
	// parallel is the number of suspended workloads that a request reads at a time. Their pages are read one after the
	// other (inTurn).
	parallel = 20
)

// Audience is the required audience of tokens. The API server rejects tokens of this audience,
// so an intercepted one gives no access to it.
const Audience = "breakwater-openapi"

// Options has the dependencies of the handler.
type Options struct {
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	Change  versioned.Interface
	Clock   clock.PassiveClock
	Meter   metric.Meter
}

// service serves the routes.
type service struct {
	Options
	requests metrics.Counter
	tokens   *auth.Tokens
	// limit limits requests by limitKey.
	limit *authlimit.Limiter
	// limitKeys caches limitKey by the hash of a token, so that requests above the limit cost no TokenReview.
	limitKeys *utilcache.LRUExpireCache
	// lists has one place: see inTurn.
	lists *fairsemaphore.Semaphore
	// suspendedLists limits how many lists of suspended workloads are kept at a time, by namespace. It is acquired before lists.
	suspendedLists *fairsemaphore.Semaphore
}

// New returns the handler of the routes.
func New(o Options) http.Handler {
	s := &service{
		Options:  o,
		requests: metrics.NewCounter(o.Meter, "breakwater_rollback_api_requests_total"),
		tokens: auth.NewTokens(o.Kube.AuthenticationV1(), auth.TokensOptions{
			Audience: Audience, RejectedTTL: rejectedTokenTTL, Clock: o.Clock}),
		limit:          authlimit.New(func() float64 { return requestsPerMinute }, o.Clock),
		limitKeys:      utilcache.NewLRUExpireCacheWithClock(maxLimitKeys, o.Clock),
		lists:          fairsemaphore.New(1),
		suspendedLists: fairsemaphore.New(2),
	}
	ofAddresses := authlimit.New(func() float64 { return unauthenticatedPerMinute }, o.Clock)
	e := echo.New()
	e.HTTPErrorHandler = answerError
	e.Use(s.count, ofAddresses.Middleware, middleware.Recover(), middleware.BodyLimit(maxBody), middleware.ContextTimeout(Timeout))
	e.GET("/openapi/altershield/suspend/deployment", s.suspended)
	e.PUT("/openapi/altershield/deployment/rollback", s.rollback)
	return e
}

// count is the outermost middleware, so that it counts the final status.
func (s *service) count(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		route := c.Path()
		if route == "" {
			route = "other"
		}
		s.requests.Add(c.Request().Context(), 1, route, strconv.Itoa(c.Response().Status), strconv.FormatBool(dryRun(c)))
		return nil
	}
}

// answer has the common fields of all answers. Code is 0, or the HTTP status of
// an error.
type answer struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Field is the invalid field, if any.
	Field string `json:"field,omitempty"`
}

// problem is an error that is returned to the user.
type problem struct {
	status  int
	field   string
	message string
}

func (p *problem) Error() string { return p.message }

func problemf(status int, format string, args ...any) *problem {
	return &problem{status: status, message: fmt.Sprintf(format, args...)}
}

// invalid returns the problem of an invalid field; fix is a valid value.
func invalid(field, value, fix string) *problem {
	return &problem{status: http.StatusUnprocessableEntity, field: field, message: fmt.Sprintf("%s: %q: %s", field, value, fix)}
}

// answerError answers an error. Internal errors are logged and not returned.
func answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	a := answer{Code: http.StatusInternalServerError, Message: "internal error: see the log of service openapi"}
	var known *problem
	var echoed *echo.HTTPError
	switch {
	case errors.As(err, &known):
		a = answer{Code: known.status, Message: known.message, Field: known.field}
	case apiServerFailed(err):
		a = answer{Code: http.StatusServiceUnavailable, Message: "the API server did not answer, or failed: try again"}
	case errors.As(err, &echoed):
		a = answer{Code: echoed.Code, Message: fmt.Sprint(echoed.Message)}
	}
	if a.Code >= http.StatusInternalServerError {
		logging.FromContext(c.Request().Context()).Errorw("Request failed", "path", c.Path(), "status", a.Code, "error", err)
	}
	if a.Code == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	_ = c.JSON(a.Code, a) // fails only if the client has disconnected
}

// apiServerFailed reports whether a request to the API server failed because it was unreachable or overloaded, took too
// long, or was answered with an error of the API server itself, for example because a webhook or etcd did not answer.
func apiServerFailed(err error) bool {
	var answer apierrs.APIStatus
	if errors.As(err, &answer) && answer.Status().Code >= http.StatusInternalServerError {
		return true
	}
	// The client's rate limiter has no error value for a wait that would end after the deadline.
	limited := strings.Contains(err.Error(), "would exceed context deadline")
	return limited || apierrs.IsTooManyRequests(err) || errors.As(err, new(*url.Error)) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
