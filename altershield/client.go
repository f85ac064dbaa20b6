package altershield

import (
	"context"
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxNodeID bounds the server's id of a node, in bytes. The events about a node have
// the same limit.
const maxNodeID = 128

var errNoNode = errors.New("the answer names no node")

// checkNode returns an error if an answer names no usable node. The node exists, but no
// callback can be matched with it.
func checkNode(action, id string) error {
	err := errNoNode
	if len(id) > maxNodeID {
		err = fmt.Errorf("the id of the node has %d bytes, more than %d", len(id), maxNodeID)
	} else if id != "" {
		return nil
	}
	return &TransportError{Action: action, Kind: KindMalformed, Sent: true, Err: err}
}

// Client calls the server. It is safe for concurrent use, holds connections
// and a token bucket, and should live as long as its Config: see Clients.
//
// Every method ends within Config.TotalDeadline and returns a *ResultError, a
// *TransportError or an error that says that the request could not be built.
// OpenOrder, Retrieve, FinishOrder and SubmitEvent are tried again, with
// jittered exponential backoff and a fresh body and signature each time.
// StartOrder, StartBatch and Finish are tried again only when the request was
// certainly not written: there is no second chance for a start or a finish
// whose answer was lost, and only the caller knows what to do then.
type Client struct {
	config Config // without the token
	caller *caller
}

// New returns a client. What config leaves at zero gets its default.
func New(config Config, options ...Option) *Client {
	config = config.withDefaults()
	c := &Client{caller: newCaller(config, options)}
	config.Token = "" // the caller's closure has it: a printed Client must not
	c.config = config
	return c
}

// Close gives idle connections back. Calls under way end normally, and later
// ones still work.
func (c *Client) Close() { c.caller.closeIdle() }

// OpenOrder opens the order of a release. An order that exists is a success.
func (c *Client) OpenOrder(ctx context.Context, in OpenOrder) (OrderAnswer, error) {
	body, err := c.order(in)
	if err != nil {
		return OrderAnswer{}, err
	}
	var domain orderDomain
	err = c.caller.call(ctx, actionOpenOrder, harmless, body, &domain)
	if IsExists(err) {
		return OrderAnswer{Existed: true}, nil
	}
	return OrderAnswer{OrderID: domain.OrderID, URL: domain.URL}, err
}

// StartOrder asks for the PRE check of the whole order. Not idempotent: each
// call makes a node.
func (c *Client) StartOrder(ctx context.Context, in StartOrder) (StartAnswer, error) {
	return c.start(ctx, actionStartOrder, c.startOf(in.OrderID, in.StartTime, in.Emergency, in.ExtensionInfo))
}

// StartBatch asks for the PRE check of a batch. Not idempotent: each call makes
// a node. The server answers 101 when the order is not open.
func (c *Client) StartBatch(ctx context.Context, in StartBatch) (StartAnswer, error) {
	// The server wants both totals, and has no word for not known yet.
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

// Finish says that the change of a node is done and asks for its POST check.
// Never send it twice for a node: the second is accepted and never judged.
func (c *Client) Finish(ctx context.Context, in Finish) (FinishAnswer, error) {
	result, err := jsonString(in.Result)
	if err != nil {
		return FinishAnswer{}, fmt.Errorf("altershield %s: result: %w", actionFinish, err)
	}
	var domain nodeDomain
	err = c.caller.call(ctx, actionFinish, harmful, finish{
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

// Retrieve asks for a verdict. Believe only RetrieveAnswer.Passed.
func (c *Client) Retrieve(ctx context.Context, in Retrieve) (RetrieveAnswer, error) {
	var domain progressDomain
	err := c.caller.call(ctx, actionRetrieve, harmless, retrieve{
		identity: c.identity(in.OrderID), NodeID: in.NodeID, DefenseStage: string(in.Stage),
	}, &domain)
	return RetrieveAnswer{Finished: domain.Finished, Verdict: string(domain.Verdict), URL: domain.URL}, err
}

// FinishOrder closes an order.
func (c *Client) FinishOrder(ctx context.Context, in FinishOrder) error {
	return c.caller.call(ctx, actionFinishOrder, harmless, finishOrder{
		identity:    c.identity(in.OrderID),
		FinishState: string(in.State),
		Msg:         text.Truncate(in.Message, maxMsg),
		FinishTime:  c.millis(in.FinishTime),
	}, nil)
}

// SubmitEvent records an event. Sent twice, it is recorded once.
func (c *Client) SubmitEvent(ctx context.Context, in SubmitEvent) (EventAnswer, error) {
	body, err := c.order(OpenOrder{
		OrderID: in.OrderID, Title: in.Title, URL: in.URL, Apps: in.Apps,
		Contents: in.Contents, Params: in.Params, Emergency: in.Emergency,
	})
	if err != nil {
		return EventAnswer{}, err
	}
	var domain orderDomain
	err = c.caller.call(ctx, actionEvent, harmless, event{
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
	if err := c.caller.call(ctx, action, harmful, body, &domain); err != nil {
		return StartAnswer{}, err
	}
	if err := checkNode(action, domain.NodeID); err != nil {
		return StartAnswer{}, err
	}
	return StartAnswer(domain), nil
}
