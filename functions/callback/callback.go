// Package callback receives verdicts of the server from outside the cluster. It
// authenticates a verdict, finds its ChangePod or order, and makes it durable before
// it answers: the Broker has accepted it as changepod.verdict or order.verdict, or it
// is stored in the inbox of its ChangeWorkload. The server sends a verdict only once
// and ignores the answer. A lost pass can be asked for later, and a check of stage PRE
// runs again, but a fail of stage POST that is lost here never comes back.
//
//	POST /openapi/altershield/callback   the server's JSON, or CloudEvents
//	POST /openapi/altershield/liveTest   "Hello world", for compatibility
package callback

import (
	"context"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const (
	// deliverTimeout limits the delivery to the Broker. The in-memory Broker answers after
	// function verdict did: about a second with a cold start, and seconds on a busy cluster. A
	// shorter timeout would add the load of the inbox while the verdict is still stored. The
	// server waits 6 s for the answer.
	deliverTimeout = 4 * time.Second
	// requestTimeout limits the handling of a request. The server disconnects after
	// 6 s and ignores the answer, but the attempts continue to save the verdict.
	requestTimeout = 25 * time.Second
	// nodeTimeoutDivisor divides requestTimeout: an early verdict waits up to 2.5 s for
	// its node.
	nodeTimeoutDivisor = 10
	// maxInProgress limits the authenticated callbacks in progress. Others
	// wait: the server does not repeat a verdict.
	maxInProgress = 100
	// firstPollInterval is the first pause between two lookups of the node.
	firstPollInterval = 50 * time.Millisecond
)

// Deliverer sends an event to the Broker and returns nil if the Broker accepted it;
// *delivery.Sender implements it.
type Deliverer interface {
	Deliver(ctx context.Context, e event.Event) error
}

// Signer signs an event; *eventsigning.Store implements it.
type Signer interface {
	Sign(ctx context.Context, e *event.Event) error
}

// Options has the dependencies of the handler.
type Options struct {
	Change versioned.Interface
	// Batches is a cache of ChangePods; with nil, as in tests, they are read for each verdict.
	Batches *Batches
	Server  *functions.ClientSource
	Broker  Deliverer
	Signer  Signer
	Clock   clock.PassiveClock
	Meter   metric.Meter
	// RequestTimeout replaces requestTimeout in tests.
	RequestTimeout time.Duration
}

// receiver serves the routes.
type receiver struct {
	Options
	received metrics.Counter
	bodies   *bodies
	large    *largeBodies
	// inProgress limits the authenticated callbacks in progress.
	inProgress chan struct{}
	// orders caches releases by the id of their order.
	orders *lru.Cache
	inbox  *functions.Inbox
}

// New returns the handler of the routes.
func New(o Options) http.Handler {
	if o.RequestTimeout == 0 {
		o.RequestTimeout = requestTimeout
	}
	r := &receiver{Options: o, received: metrics.NewCounter(o.Meter, "breakwater_callback_results_total"), orders: lru.New(maxOrders),
		bodies: newBodies(maxReserved), large: newLargeBodies(), inProgress: make(chan struct{}, maxInProgress),
		inbox: functions.NewInbox(o.Change)}
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if !c.Response().Committed {
			_ = c.JSON(statusOf(err), answer{}) // fails only if the sender has disconnected
		}
	}
	e.Use(middleware.Recover())
	e.POST("/openapi/altershield/callback", r.callback)
	e.POST("/openapi/altershield/liveTest", liveTest)
	return e
}

// answer is the body of a response. AlterShield ignores it; another server, which posts
// CloudEvents, may read it.
type answer struct {
	Success bool   `json:"success"`
	Msg     string `json:"msg,omitempty"`
}

func liveTest(c echo.Context) error {
	return c.JSON(http.StatusOK, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{0, "Hello world"})
}
