package altershield

import (
	"context"
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxNodeID is the maximum length of the server's id of a node, in bytes. Events
// about a node have the same limit.
const maxNodeID = 128

var errNoNode = errors.New("answer has no node")

// checkNode returns an error if an answer has no usable node id. The server has created
// a node, but no callback can be matched with it.
func checkNode(action, id string) error {
	err := errNoNode
	if len(id) > maxNodeID {
		err = fmt.Errorf("id of the node has %d bytes, more than %d", len(id), maxNodeID)
	} else if id != "" {
		return nil
	}
	return &CallError{Action: action, Kind: KindMalformed, MaybeReceived: true, Err: err}
}

// Client calls the server. It is safe for concurrent use. It has connections and
// a token bucket, so use one Client as long as its Config is unchanged: see
// CurrentClient.
//
// Every method that calls the server returns within Config.TotalDeadline; Reserve waits as
// long as its context allows. The error of a method that calls the server is a *ResultError,
// a *CallError, or an error of building the request. OpenOrder, Retrieve,
// CloseOrder, SubmitEvent and CheckRelease are retried with jittered
// exponential backoff and a new signature. StartOrder, StartBatch, Finish and
// Resubmit are retried only if the request was certainly not sent. After a lost answer only
// the caller can decide what to do.
type Client struct {
	config Config // without the token
	caller *caller
}

// New returns a client. Zero fields of config have their defaults.
func New(config Config, options ...Option) *Client {
	config = config.withDefaults()
	c := &Client{caller: newCaller(config, options)}
	config.PreviousToken = ""
	config.Token = "" // only the closure in caller has it, so a printed Client does not show it
	c.config = config
	return c
}

// Close closes idle connections and removes the state of the breaker from the metrics. Calls in
// flight complete, and later calls still work.
func (c *Client) Close() {
	c.caller.closeIdle()
	_ = c.caller.breaker.observed.Unregister() // the SDK always returns nil
}

// OpenOrder opens the order of a release. It succeeds if the order exists.
func (c *Client) OpenOrder(ctx context.Context, in OpenOrder) (OrderAnswer, error) {
	body, err := c.order(actionOpenOrder, in)
	if err != nil {
		return OrderAnswer{}, err
	}
	var domain orderDomain
	err = c.caller.call(ctx, actionOpenOrder, repeatHarmless, body, &domain)
	if IsExists(err) {
		return OrderAnswer{Existed: true}, nil
	}
	return OrderAnswer{OrderID: domain.OrderID, URL: domain.URL}, err
}

// StartOrder requests the PRE check of the order as a whole. It is not
// idempotent: each call creates a node.
func (c *Client) StartOrder(ctx context.Context, in StartOrder) (StartAnswer, error) {
	return c.start(ctx, actionStartOrder, c.startOf(in.OrderID, in.StartTime, in.Emergency, in.ExtensionInfo))
}

// StartBatch requests the PRE check of a batch. It is not idempotent: each call
// creates a node. The server answers 101 if the order is not open.
func (c *Client) StartBatch(ctx context.Context, in StartBatch) (StartAnswer, error) {
	// The server requires both totals and has no value for an unknown total.
	total := max(in.TotalBatches, in.BatchNo+1)
	last := lastTag(in.Last)
	info := in.Info
	if info.Pods == nil {
		info.Pods = []string{}
	}
	return c.start(ctx, actionStartBatch, batchStart{
		start:                      c.startOf(in.OrderID, in.StartTime, in.Emergency, in.ExtensionInfo),
		BatchNo:                    in.BatchNo,
		TotalBatchNum:              total,
		TotalBatchNumInChangePhase: total,
		IsLastBatchTag:             last,
		IsLastBatchInPhaseTag:      last,
		ChangePhase:                c.config.ChangePhase,
		EffectiveTargetType:        c.config.EffectiveTargetType,
		EffectiveTargetLocations:   info.Pods,
		ExtInfo:                    info,
	})
}

// Finish reports that the change of a node is complete and requests its POST
// check. Do not rely on a second finish of a node: the server rejects it while the check
// of the first one runs; later it accepts it, but rarely judges it.
func (c *Client) Finish(ctx context.Context, in Finish) (FinishAnswer, error) {
	result, err := jsonString(in.Result)
	if err != nil {
		return FinishAnswer{}, fmt.Errorf("altershield %s: result: %w", actionFinish, err)
	}
	var domain nodeDomain
	err = c.caller.call(ctx, actionFinish, repeatHarmful, finish{
		identity:                 c.identity(in.OrderID),
		NodeID:                   in.NodeID,
		Success:                  !in.Failed,
		Msg:                      text.Truncate(in.Message, maxMsg),
		ServiceResult:            result,
		ChangeResultJSON:         result,
		FinishTime:               c.millis(in.FinishTime),
		EffectiveTargetLocations: in.Pods,
	}, &domain)
	return FinishAnswer{NodeID: domain.NodeID, URL: domain.URL}, err
}

// Resubmit runs the PRE check of a node again; the verdict follows in a callback. The
// server rejects it unless the check has ended. If the check never began, IsNotBegun
// reports true for the error: repeat the start.
func (c *Client) Resubmit(ctx context.Context, in Resubmit) error {
	var domain nodeDomain
	return c.caller.call(ctx, actionResubmit, repeatHarmful, resubmit{identity: c.identity(in.OrderID), NodeID: in.NodeID}, &domain)
}

// Retrieve reads a verdict. Rely only on RetrieveAnswer.Passed.
func (c *Client) Retrieve(ctx context.Context, in Retrieve) (RetrieveAnswer, error) {
	var domain progressDomain
	err := c.caller.call(ctx, actionRetrieve, repeatHarmless, retrieve{
		identity: c.identity(in.OrderID), NodeID: in.NodeID, DefenseStage: string(in.Stage),
	}, &domain)
	return RetrieveAnswer{Complete: domain.Complete, Verdict: string(domain.Verdict), URL: domain.URL}, err
}

// CloseOrder closes an order.
func (c *Client) CloseOrder(ctx context.Context, in CloseOrder) error {
	return c.caller.call(ctx, actionCloseOrder, repeatHarmless, closeOrder{
		identity:    c.identity(in.OrderID),
		FinishState: string(in.State),
		Msg:         text.Truncate(in.Message, maxMsg),
		FinishTime:  c.millis(in.FinishTime),
	}, nil)
}

// SubmitEvent records an event. An event that is sent twice is recorded once.
func (c *Client) SubmitEvent(ctx context.Context, in SubmitEvent) (EventAnswer, error) {
	body, err := c.order(actionEvent, OpenOrder{
		OrderID: in.OrderID, Title: in.Title, URL: in.URL, Apps: in.Apps,
		Contents: in.Contents, Params: in.Params, Emergency: in.Emergency,
	})
	if err != nil {
		return EventAnswer{}, err
	}
	var domain orderDomain
	err = c.caller.call(ctx, actionEvent, repeatHarmless, event{
		order:         body,
		Executor:      c.config.Creator,
		StartTime:     c.millis(in.StartTime),
		FinishTime:    c.millis(in.FinishTime),
		ExtensionInfo: in.ExtensionInfo,
	}, &domain)
	return EventAnswer(domain), err
}

func (c *Client) start(ctx context.Context, action string, body any) (StartAnswer, error) {
	var domain nodeDomain
	if err := c.caller.call(ctx, action, repeatHarmful, body, &domain); err != nil {
		return StartAnswer{}, err
	}
	if err := checkNode(action, domain.NodeID); err != nil {
		return StartAnswer{}, err
	}
	return StartAnswer(domain), nil
}
