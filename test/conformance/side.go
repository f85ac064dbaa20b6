package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// side is Breakwater's side of one run.
type side struct {
	config    altershield.Config
	client    *altershield.Client
	wire      *wire
	callbacks *endpoint
	// wait is the maximum time until a callback; linger is the time to wait for
	// additional callbacks at the end.
	wait, linger time.Duration

	// order is the id of the order of this run.
	order  string
	opened bool
	// asked are the requested checks.
	asked   []*asked
	batches []*batch
}

// asked is a requested check.
type asked struct {
	what  string
	kind  altershield.CheckType
	node  string
	stage v1alpha1.Stage
	// since is the time just before the request.
	since time.Time
	// skipped: the judge answered that it skips the check.
	skipped bool
	// called: the judge called back in time.
	called bool
}

// newSide returns a side with a new order id.
func newSide(config altershield.Config, callbacks *endpoint, wait, linger time.Duration) *side {
	w := &wire{}
	return &side{
		config: config, callbacks: callbacks, wire: w, wait: wait, linger: linger,
		client: altershield.New(config, altershield.WithTransport(w), altershield.WithPause(50*time.Millisecond)),
		order:  "conformance/" + strconv.FormatInt(time.Now().UnixNano(), 36),
	}
}

// sign signs as Breakwater does.
func (s *side) sign(header http.Header, body []byte) {
	altershield.SignHeader(header, s.config.HeaderPrefix, s.config.Platform, body, s.config.Token, time.Now())
}

// signWith signs with another platform or token.
func (s *side) signWith(platform, token string) func(http.Header, []byte) {
	return func(header http.Header, body []byte) {
		altershield.SignHeader(header, s.config.HeaderPrefix, platform, body, token, time.Now())
	}
}

// send posts a body to an action.
func (s *side) send(ctx context.Context, action string, body []byte, sign func(http.Header, []byte)) (exchange, error) {
	return s.wire.send(ctx, strings.TrimRight(s.config.BaseURL, "/")+"/openapi/v1/exe/"+action, body, sign)
}

// again repeats the last successful call of an action with changed fields; nil
// removes a field.
func (s *side) again(ctx context.Context, action string, fields map[string]any, sign func(http.Header, []byte)) (exchange, error) {
	good, err := s.wire.last(action)
	if err != nil {
		return exchange{}, err
	}
	body, err := good.edited(fields)
	if err != nil {
		return exchange{}, err
	}
	return s.send(ctx, action, body, sign)
}

// expect records a requested check and waits for its callback.
func (s *side) expect(ctx context.Context, a *asked) error {
	s.asked = append(s.asked, a)
	if a.skipped {
		return nil
	}
	if a.called = s.callbacks.await(ctx, a.node, a.stage, s.wait); !a.called {
		return fmt.Errorf("no trusted callback of %s arrived within %s", a.what, s.wait)
	}
	return nil
}

// attempts is the maximum number of calls for a start without an answer.
const attempts = 3

// start repeats a start until it is answered, as Breakwater does.
func start(do func() (altershield.StartAnswer, error)) (altershield.StartAnswer, error) {
	answer, err := do()
	for i := 1; i < attempts && err != nil && altershield.MayHaveReached(err); i++ {
		answer, err = do()
	}
	return answer, err
}

// finish finishes a node. After a lost answer it calls retrieve before it
// retries, as Breakwater does.
func (s *side) finish(ctx context.Context, node string, pods []string) error {
	in := altershield.Finish{OrderID: s.order, NodeID: node, Message: "conformance", Pods: pods}
	_, err := s.client.Finish(ctx, in)
	for i := 1; i < attempts && err != nil && altershield.MayHaveReached(err); i++ {
		if s.passed(ctx, node, v1alpha1.StagePost) {
			return nil
		}
		_, err = s.client.Finish(ctx, in)
		if altershield.IsState(err) && strings.Contains(err.Error(), "POST_AOP") {
			err = nil // the call with the lost answer was executed
		}
	}
	return err
}

// passed calls retrieve and reports whether the verdict is pass.
func (s *side) passed(ctx context.Context, node string, stage v1alpha1.Stage) bool {
	answer, err := s.client.Retrieve(ctx, altershield.Retrieve{OrderID: s.order, NodeID: node, Stage: stage})
	return err == nil && answer.Passed()
}

// needOrder skips a check that needs an open order.
func (s *side) needOrder() error {
	if !s.opened {
		return skip("no order could be opened")
	}
	return nil
}
