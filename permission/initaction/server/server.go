package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/auth"
	"github.com/breakwater-dev/breakwater/internal/authlimit"
	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

const (
	// maxBody is the size limit of a request body, which contains a few names.
	maxBody = "16K"
	// apiServerTimeout bounds one call to the API server.
	apiServerTimeout = 5 * time.Second
	// RequestTimeout bounds a request other than authorize.
	RequestTimeout = 20 * time.Second
)

// Centre is the client of the permission centre.
type Centre interface {
	ListByPod(ctx context.Context, cluster, uid string) ([]api.Application, error)
	Apply(ctx context.Context, r api.ApplicationRequest) (api.Application, error)
	Wait(ctx context.Context, id string, version int64, wait time.Duration) (api.Application, error)
	Revoke(ctx context.Context, r api.RevokeRequest) (api.RevokeResult, error)
	Reset(ctx context.Context, id string) error
}

// Breaker is the circuit breaker of pods.
type Breaker interface {
	Do(ctx context.Context, r podbreaker.Request) (podbreaker.Decision, error)
	Peek(key string, uid types.UID, now time.Time, holder string) podbreaker.Decision
}

// Options configure the server.
type Options struct {
	Kube kubernetes.Interface
	// Pods lists the pods with the label; it may be stale.
	Pods     corelisters.PodLister
	Notifier *notifier.Notifier
	Centre   Centre
	// Limit limits the rate of calls to Centre; nil is unlimited.
	Limit   *rate.Limiter
	Breaker Breaker
	// Preparations run before the permissions are requested.
	Preparations []Preparation
	Settings     func() settings.Settings
	Clock        clock.WithTicker
	// Random returns numbers from 0 to 1.
	Random   func() float64
	Recorder record.EventRecorder
	Events   events.Sender
	Meter    metric.Meter
	// Draining is closed when the process shuts down. Open calls then end, and clients retry. Pods, Recorder and Events need
	// not work anymore, so new calls and resets are answered with an error.
	Draining <-chan struct{}
}

type server struct {
	Options
	nodes *nodeCache
	// announcements is the guard of announced addresses.
	announcements *announcementGuard
	calls         *openCalls
	// turns has one place: that of the call that waits for Limit. Others wait for the place, by namespace.
	turns   *fairsemaphore.Semaphore
	metrics *instruments
	// tokens authenticates tokens of pods and users that have the audience of this server.
	// A token for the API server is rejected, so that clients do not send one: who reads it,
	// here or on the network, could use it at the API server.
	tokens *auth.Tokens
	// requestLimit limits the requests of a token, by its hash, and of the pods to which tokens are bound, by their UIDs.
	requestLimit *authlimit.Limiter
}

// New returns the HTTP handler of the server.
func New(o Options) http.Handler {
	s := &server{Options: o, nodes: newNodes(o.Kube, o.Clock), announcements: &announcementGuard{kube: o.Kube, clock: o.Clock}, calls: newOpenCalls(), turns: fairsemaphore.New(1), metrics: newInstruments(o.Meter, o.Notifier),
		tokens:       auth.NewTokens(o.Kube.AuthenticationV1(), auth.TokensOptions{Audience: protocol.TokenAudience, RejectedTTL: rejectedTokenTTL, Clock: o.Clock}),
		requestLimit: authlimit.New(func() float64 { return requestsPerMinute }, o.Clock)}
	e := echo.New()
	e.HTTPErrorHandler = s.writeError
	limit := authlimit.New(func() float64 { return o.Settings().UnauthenticatedRequestsPerMinute }, o.Clock)
	e.Use(limit.Middleware, middleware.Recover(), middleware.BodyLimit(maxBody))
	e.POST(protocol.AuthorizePath, s.authorize)
	short := middleware.ContextTimeout(RequestTimeout)
	e.GET("/v1/pods/:namespace/:name", s.status, short)
	e.POST("/v1/pods/:namespace/:name/reset", s.reset, short)
	return e
}

// problem is an error that is sent to the client.
type problem struct {
	status          int
	reason, message string
}

func (p *problem) Error() string { return p.message }

func problemf(status int, reason, format string, args ...any) *problem {
	return &problem{status, reason, fmt.Sprintf(format, args...)}
}

// writeError writes an error response. Internal errors are logged and not sent.
func (s *server) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p := &problem{http.StatusInternalServerError, "Internal", "internal error; see the log of the init-action-server"}
	if known, ok := errors.AsType[*problem](err); ok {
		p = known
	} else if echoed, ok := errors.AsType[*echo.HTTPError](err); ok {
		p = problemf(echoed.Code, http.StatusText(echoed.Code), "%v", echoed.Message)
	}
	if p.status >= http.StatusInternalServerError {
		logging.FromContext(c.Request().Context()).Errorw("Request failed", "path", c.Path(), "error", err)
	}
	if p.status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	s.metrics.reject(c.Request().Context(), c.Path(), p.status, p.reason)
	_ = c.JSON(p.status, protocol.Answer{State: protocol.Failed, Reason: p.reason, Message: p.message}) // fails only if the client disconnected
}
