// Package callback receives the server's verdicts from outside the cluster. It
// authenticates them, finds out which ChangePod or order is meant, and makes the
// verdict durable before it answers: the Broker has accepted it as
// changepod.verdict or order.verdict, or it waits in the inbox of its ChangeWorkload. The server sends a verdict
// once and ignores the answer, so what gets lost here is lost.
//
//	POST /openapi/altershield/callback   the server's JSON, or CloudEvents
//	POST /openapi/altershield/liveTest   "Hello world", as the original has it
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
	// maxBody is how many bytes a callback may have. The server's rules are in
	// it, with texts of any length.
	maxBody = "1M"
	// deliverTimeout is how long the Broker may take to accept a verdict. The
	// in-memory one answers after function verdict has, its cold start
	// included: about a second.
	deliverTimeout = 3 * time.Second
	// storeTimeout bounds all of it. The server hangs up after 6 s and ignores
	// the answer, but the verdict is worth trying on.
	storeTimeout = 25 * time.Second
	// earlyShare is the part of it (2.5 s) that a verdict may wait for its node,
	// and firstLook when that is looked for again at first.
	earlyShare = 10
	firstLook  = 50 * time.Millisecond
)

// Deliverer hands an event to the Broker and returns nil when that has accepted
// it; *delivery.Sender is one.
type Deliverer interface {
	Deliver(ctx context.Context, e event.Event) error
}

// Options are what a Receiver works with.
type Options struct {
	Change versioned.Interface
	Server *functions.ClientSource
	Broker Deliverer
	Clock  clock.PassiveClock
	Meter  metric.Meter
	// StoreTimeout replaces storeTimeout in tests.
	StoreTimeout time.Duration
}

// receiver serves the routes.
type receiver struct {
	Options
	received metrics.Counter
	// orders are the releases that have them, by order id.
	orders *lru.Cache
}

// New returns the handler of the routes.
func New(o Options) http.Handler {
	if o.StoreTimeout == 0 {
		o.StoreTimeout = storeTimeout
	}
	r := &receiver{Options: o, received: metrics.NewCounter(o.Meter, "breakwater_callbacks_total"), orders: lru.New(maxOrders)}
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if !c.Response().Committed {
			_ = c.JSON(statusOf(err), answer{}) // whoever does not read the answer has gone
		}
	}
	e.Use(middleware.Recover(), middleware.BodyLimit(maxBody))
	e.POST("/openapi/altershield/callback", r.callback)
	e.POST("/openapi/altershield/liveTest", liveTest)
	return e
}

// answer is what the server gets, which ignores it, and a judge that posts
// CloudEvents, which may read it.
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
