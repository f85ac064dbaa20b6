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
	config altershield.Config
	client *altershield.Client
	wire   *wire
	came   *endpoint
	// wait is how long a callback may take, linger how long is waited for
	// callbacks that nobody waits for.
	wait, linger time.Duration

	// order is the one of this run.
	order  string
	opened bool
	// asked are the checks that the judge was asked for.
	asked   []*asked
	batches []*batch
}

// asked is a check that the judge was asked for.
type asked struct {
	what  string
	kind  altershield.CheckType
	node  string
	stage v1alpha1.Stage
	// since is just before it was asked for.
	since time.Time
	// skipped: the judge said that it does not check.
	skipped bool
	// called: the judge called back in time.
	called bool
}

// newSide returns a side whose order nobody has used before.
func newSide(config altershield.Config, came *endpoint, wait, linger time.Duration) *side {
	w := &wire{}
	return &side{
		config: config, came: came, wire: w, wait: wait, linger: linger,
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

// again sends the last good call of an action with some fields changed; nil
// takes one out.
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

// expect asks for a check and waits for its callback.
func (s *side) expect(ctx context.Context, a *asked) error {
	s.asked = append(s.asked, a)
	if a.skipped {
		return nil
	}
	if a.called = s.came.await(ctx, a.node, a.stage, s.wait); !a.called {
		return fmt.Errorf("%s was not called back within %s, or not so that it can be believed", a.what, s.wait)
	}
	return nil
}

// attempts is how often a start is made that gets no answer.
const attempts = 3

// start makes a start until it is answered, as Breakwater does.
func start(do func() (altershield.StartAnswer, error)) (altershield.StartAnswer, error) {
	answer, err := do()
	for i := 1; i < attempts && err != nil && altershield.MayHaveReached(err); i++ {
		answer, err = do()
	}
	return answer, err
}

// finish finishes a node. After a lost answer it asks for a verdict before it
// does so again, as Breakwater does.
func (s *side) finish(ctx context.Context, node string, pods []string) error {
	in := altershield.Finish{OrderID: s.order, NodeID: node, Message: "conformance", Pods: pods}
	_, err := s.client.Finish(ctx, in)
	for i := 1; i < attempts && err != nil && altershield.MayHaveReached(err); i++ {
		if s.passed(ctx, node, v1alpha1.StagePost) {
			return nil
		}
		_, err = s.client.Finish(ctx, in)
		if altershield.IsState(err) && strings.Contains(err.Error(), "POST_AOP") {
			err = nil // the one whose answer was lost had arrived
		}
	}
	return err
}

// passed asks the judge for a verdict and believes only a pass.
func (s *side) passed(ctx context.Context, node string, stage v1alpha1.Stage) bool {
	answer, err := s.client.Retrieve(ctx, altershield.Retrieve{OrderID: s.order, NodeID: node, Stage: stage})
	return err == nil && answer.Passed()
}

// needOrder skips a check for which an order has to be open.
func (s *side) needOrder() error {
	if !s.opened {
		return skip("no order could be opened")
	}
	return nil
}
