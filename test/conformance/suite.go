package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// suite is one run of the tests. It calls the server and receives its callbacks
// as Breakwater does.
type suite struct {
	config    altershield.Config
	client    *altershield.Client
	wire      *wire
	callbacks *endpoint
	// wait is the maximum time until a callback. lateWait is the time to wait for
	// late and repeated callbacks at the end.
	wait, lateWait time.Duration

	// order is the id of the order of this run.
	order  string
	opened bool
	// requested are the checks that the server was asked for.
	requested []*requestedCheck
	batches   []*batch
}

// requestedCheck is the check of one stage of a node.
type requestedCheck struct {
	name  string
	kind  altershield.CheckType
	node  string
	stage v1alpha1.Stage
	// since is the time just before the request.
	since time.Time
	// skipped: the server answered that it skips the check.
	skipped bool
	// calledBack: the server called back in time.
	calledBack bool
}

// newSuite returns a suite with a new order id.
func newSuite(config altershield.Config, callbacks *endpoint, wait, lateWait time.Duration) *suite {
	w := &wire{}
	return &suite{
		config: config, callbacks: callbacks, wire: w, wait: wait, lateWait: lateWait,
		client: altershield.New(config, altershield.WithTransport(w), altershield.WithPause(50*time.Millisecond)),
		order:  "conformance/" + strconv.FormatInt(time.Now().UnixNano(), 36),
	}
}

// sign signs a call as Breakwater does.
func (s *suite) sign(header http.Header, body []byte) {
	altershield.SignHeader(header, s.config.HeaderPrefix, s.config.Platform, body, s.config.Token, time.Now())
}

// signWith returns a function that signs with this platform and token.
func (s *suite) signWith(platform, token string) func(http.Header, []byte) {
	return func(header http.Header, body []byte) {
		altershield.SignHeader(header, s.config.HeaderPrefix, platform, body, token, time.Now())
	}
}

// send posts a body to an action.
func (s *suite) send(ctx context.Context, action string, body []byte, sign func(http.Header, []byte)) (exchange, error) {
	return s.wire.send(ctx, strings.TrimRight(s.config.BaseURL, "/")+"/openapi/v1/exe/"+action, body, sign)
}

// again repeats the last successful call of an action with changed fields; nil
// removes a field.
func (s *suite) again(ctx context.Context, action string, fields map[string]any, sign func(http.Header, []byte)) (exchange, error) {
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
func (s *suite) expect(ctx context.Context, a *requestedCheck) error {
	s.requested = append(s.requested, a)
	if a.skipped {
		return nil
	}
	if a.calledBack = s.callbacks.await(ctx, a.node, a.stage, s.wait); !a.calledBack {
		return fmt.Errorf("no trusted callback of %s arrived within %s", a.name, s.wait)
	}
	return nil
}

// attempts is the maximum number of calls for a start without an answer.
const attempts = 3

// start repeats a start until it is answered, as Breakwater does.
func start(do func() (altershield.StartAnswer, error)) (altershield.StartAnswer, error) {
	answer, err := do()
	for i := 1; i < attempts && err != nil && altershield.MayHaveTakenEffect(err); i++ {
		answer, err = do()
	}
	return answer, err
}

// finish finishes a node. After a lost answer it calls retrieve before it
// retries, as Breakwater does.
func (s *suite) finish(ctx context.Context, node string, pods []string) error {
	in := altershield.Finish{OrderID: s.order, NodeID: node, Message: "conformance", Pods: pods}
	_, err := s.client.Finish(ctx, in)
	for i := 1; i < attempts && err != nil && altershield.MayHaveTakenEffect(err); i++ {
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

// passed calls retrieve and reports whether it returns pass.
func (s *suite) passed(ctx context.Context, node string, stage v1alpha1.Stage) bool {
	answer, err := s.client.Retrieve(ctx, altershield.Retrieve{OrderID: s.order, NodeID: node, Stage: stage})
	return err == nil && answer.Passed()
}

// confirms reports whether retrieve confirms a pass without rules. It repeats the call for at
// most lateWait, because the server may have called back before the check ended.
func (s *suite) confirms(ctx context.Context, node string, stage v1alpha1.Stage) bool {
	err := wait.PollUntilContextTimeout(ctx, min(50*time.Millisecond, s.lateWait), s.lateWait, true, func(context.Context) (bool, error) {
		return s.passed(ctx, node, stage), nil
	})
	return err == nil
}

// needOrder skips a check that needs an open order.
func (s *suite) needOrder() error {
	if !s.opened {
		return skip("no order could be opened")
	}
	return nil
}
