package altershield

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// ForReleaseCheck returns the Config for release checks: with their scene.
func (c Config) ForReleaseCheck() Config {
	c.ChangeSceneKey = c.ReleaseCheckSceneKey
	return c
}

// ReleaseCheckOrderID returns the id of the order for a release check. It differs from
// the id of the release's order, which has another scene. Repeated checks of a release
// have the same id. The id therefore does not contain the UID of the workload: a
// retried creation has another UID.
func ReleaseCheckOrderID(cluster, namespace, kind, name, version string, attempt int64) string {
	ref := v1alpha1.WorkloadRef{Kind: kind, Name: name}
	return EventOrderID(v1alpha1.OrderID(cluster, namespace, ref, version, attempt), "release")
}

// CheckRelease has the arguments of Client.CheckRelease.
type CheckRelease struct {
	// OrderID is the id of the check; see ReleaseCheckOrderID.
	OrderID string
	// Title, URL, Apps, Contents, Params and Emergency are as in OpenOrder.
	Title     string
	URL       string
	Apps      []string
	Contents  []Content
	Params    any
	Emergency bool
	// Timeout limits the check at the server; it is truncated to milliseconds.
	Timeout   time.Duration
	StartTime time.Time
}

// ReleaseCheckAnswer is the server's verdict on a release.
type ReleaseCheckAnswer struct {
	// OrderID and NodeID are the server's ids.
	OrderID string
	NodeID  string
	// URL is the check's page at the server.
	URL string
	// Verdict is the server's value, truncated to 63 bytes. Interpret it with
	// v1alpha1.ParseVerdict.
	Verdict string
	// Rules are the results of the checked rules.
	Rules []Rule
	// Message lists the failed rules for people, or is the server's message; at
	// most 1024 bytes.
	Message string
	// Unconfirmed means that the verdict is a pass without rules, or of a check that
	// is not complete. The server also sends it after a timeout or an exception of
	// a check: call Retrieve, and rely only on RetrieveAnswer.Passed.
	Unconfirmed bool
}

// CheckRelease opens an order, starts its check and returns the verdict, in one
// call. The scene must be of generation 1; otherwise the server answers 103.
//
// A repeated call with the same id checks the same node of the same order again,
// so the call is retried. Use a context with a longer timeout than
// CheckRelease.Timeout; otherwise the server's answer to a timeout arrives too
// late.
//
// The order stays open, because finishing it would start a POST check.
func (c *Client) CheckRelease(ctx context.Context, in CheckRelease) (ReleaseCheckAnswer, error) {
	body, err := c.order(actionCheckRelease, OpenOrder{
		OrderID: in.OrderID, Title: in.Title, URL: in.URL, Apps: in.Apps,
		Contents: in.Contents, Params: in.Params, Emergency: in.Emergency,
	})
	if err != nil {
		return ReleaseCheckAnswer{}, err
	}
	var domain releaseDomain
	err = c.caller.call(ctx, actionCheckRelease, repeatHarmless, releaseCheck{
		order:        body,
		Executor:     c.config.Creator,
		StartTime:    c.millis(in.StartTime),
		CheckTimeout: in.Timeout.Milliseconds(),
	}, &domain)
	if err != nil {
		return ReleaseCheckAnswer{}, err
	}
	if err := checkNode(actionCheckRelease, domain.NodeID); err != nil {
		return ReleaseCheckAnswer{}, err
	}
	return domain.answer(), nil
}

type releaseDomain struct {
	OrderID string          `json:"orderId"`
	NodeID  string          `json:"nodeId"`
	URL     string          `json:"url"`
	Verdict *releaseVerdict `json:"verdict"`
}

// releaseVerdict is the verdict of a callback with the further fields of an
// answer.
type releaseVerdict struct {
	callbackVerdict
	AllFinish *bool       `json:"allFinish"`
	Msg       displayText `json:"msg"`
}

func (d releaseDomain) answer() ReleaseCheckAnswer {
	a := ReleaseCheckAnswer{OrderID: d.OrderID, NodeID: d.NodeID, URL: d.URL}
	if d.Verdict == nil {
		return a
	}
	var c Callback
	c.setVerdict(&d.Verdict.callbackVerdict)
	incomplete := d.Verdict.AllFinish != nil && !*d.Verdict.AllFinish
	passed := v1alpha1.ParseVerdict(c.Verdict) == v1alpha1.OutcomePass
	a.Verdict, a.Rules, a.Message = c.Verdict, c.Rules, c.Message
	a.Unconfirmed = c.Unconfirmed || passed && incomplete
	if a.Message == "" && (!passed || a.Unconfirmed) {
		a.Message = text.Truncate(string(d.Verdict.Msg), maxMessage)
	}
	return a
}
