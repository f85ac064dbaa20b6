package altershield

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// ForReleaseCheck returns the Config with which a release is checked before it
// is admitted: that of the scene of release checks.
func (c Config) ForReleaseCheck() Config {
	c.ChangeSceneKey = c.ReleaseCheckSceneKey
	return c
}

// ReleaseOrderID is the id of the order under which a release is asked about.
// It must not be that of the release's own order, which is of another scene.
// The same question has the same id, whoever asks it and however often: there
// is no UID in it, because a creation that is tried again has another.
func ReleaseOrderID(cluster, namespace, kind, name, version string, attempt int64) string {
	ref := v1alpha1.WorkloadRef{Kind: kind, Name: name}
	return EventOrderID(v1alpha1.OrderID(cluster, namespace, ref, version, attempt), "release")
}

// CheckRelease asks about a release before it begins.
type CheckRelease struct {
	// OrderID is the id of the question; see ReleaseOrderID.
	OrderID string
	// Title, URL, Apps, Contents, Params and Emergency are as in OpenOrder.
	Title     string
	URL       string
	Apps      []string
	Contents  []Content
	Params    any
	Emergency bool
	// Timeout is how long the server may check; it rounds to milliseconds.
	Timeout   time.Duration
	StartTime time.Time
}

// ReleaseAnswer is the server's verdict on a release.
type ReleaseAnswer struct {
	// OrderID and NodeID are the server's ids.
	OrderID string
	NodeID  string
	// URL shows the check to people.
	URL string
	// Verdict is the server's word, cut to 63 bytes. v1alpha1.ParseVerdict says
	// what it counts as.
	Verdict string
	// Rules are what was checked.
	Rules []Rule
	// Message tells a person which rules failed, or what the server said
	// instead; at most 1024 bytes.
	Message string
	// Unjudged says that the verdict is a pass without any rule, or of a check
	// that is not at its end. The server says this of a check that timed out or
	// threw, too: ask Retrieve, and believe only its pass.
	Unjudged bool
}

// CheckRelease opens an order, has the server check it and returns the verdict,
// in one call. The scene must be of generation 1; the server answers 103 in
// others.
//
// Asked again with the same id, the published server checks the same node of
// the same order again; so the call is tried again like one that does no harm.
// The context bounds all of it: make it longer than Timeout, or the server's
// own time-out is never heard of.
//
// The order stays open. To finish it would start a POST check of its node.
func (c *Client) CheckRelease(ctx context.Context, in CheckRelease) (ReleaseAnswer, error) {
	body, err := c.order(OpenOrder{
		OrderID: in.OrderID, Title: in.Title, URL: in.URL, Apps: in.Apps,
		Contents: in.Contents, Params: in.Params, Emergency: in.Emergency,
	})
	if err != nil {
		return ReleaseAnswer{}, err
	}
	var domain releaseDomain
	err = c.caller.call(ctx, actionCheckRelease, harmless, releaseCheck{
		order:        body,
		Executor:     c.config.Creator,
		StartTime:    c.millis(in.StartTime),
		CheckTimeout: in.Timeout.Milliseconds(),
	}, &domain)
	if err != nil {
		return ReleaseAnswer{}, err
	}
	if err := checkNode(actionCheckRelease, domain.NodeID); err != nil {
		return ReleaseAnswer{}, err
	}
	return domain.answer(), nil
}

type releaseDomain struct {
	OrderID string          `json:"orderId"`
	NodeID  string          `json:"nodeId"`
	URL     string          `json:"url"`
	Verdict *releaseVerdict `json:"verdict"`
}

// releaseVerdict is the verdict of a callback, and what only an answer has.
type releaseVerdict struct {
	callbackVerdict
	AllFinish *bool `json:"allFinish"`
	Msg       loose `json:"msg"`
}

func (d releaseDomain) answer() ReleaseAnswer {
	a := ReleaseAnswer{OrderID: d.OrderID, NodeID: d.NodeID, URL: d.URL}
	if d.Verdict == nil {
		return a
	}
	var said Callback
	said.judge(&d.Verdict.callbackVerdict)
	unfinished := d.Verdict.AllFinish != nil && !*d.Verdict.AllFinish
	passed := v1alpha1.ParseVerdict(said.Verdict) == v1alpha1.OutcomePass
	a.Verdict, a.Rules, a.Message = said.Verdict, said.Rules, said.Message
	a.Unjudged = said.Unjudged || passed && unfinished
	if a.Message == "" && (!passed || a.Unjudged) {
		a.Message = text.Truncate(string(d.Verdict.Msg), maxMessage)
	}
	return a
}
