package changeworkload

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// strangerTime is how long a verdict for a node that nobody knows is kept: the
// answer to the start that made the node may still be on its way. Longer than
// any call to the server lasts.
const unknownNodeTimeout = 2 * time.Minute

// letter is what becomes of an entry of the inbox.
type inboxAction int

const (
	// letterSend: its batch or order is known and has not got it.
	inboxSend inboxAction = iota
	// letterWait: its batch is not known yet.
	inboxWait
	// letterDone: its batch has got it, or nobody will ever know its node.
	inboxRemove
)

// forOrder says whether an entry is about the order as a whole.
func forOrder(v v1alpha1.InboxVerdict, c *v1alpha1.ChangeWorkload) bool {
	return v.NodeID != "" && c.Status.Order.Node() == v.NodeID
}

// sortLetter decides what becomes of an entry, and which batch it is for; nil
// where it is for the order as a whole.
func decideInbox(v v1alpha1.InboxVerdict, release *v1alpha1.ChangeWorkload, changePods []*v1alpha1.ChangePod, now time.Time) (inboxAction, *v1alpha1.ChangePod) {
	if forOrder(v, release) {
		got := release.Status.OrderVerdictOf(v.Stage)
		if got != nil && verdictRank(got.Verdict, got.Unjudged) >= verdictRank(v.Verdict, v.Unjudged) {
			return inboxRemove, nil
		}
		return inboxSend, nil
	}
	for _, c := range changePods {
		if c.Status.ChangePodID != v.NodeID {
			continue
		}
		got := c.Status.VerdictOf(v.Stage)
		if got != nil && verdictRank(got.Verdict, got.Unjudged) >= verdictRank(v.Verdict, v.Unjudged) && failsRecorded(v, c) {
			return inboxRemove, c
		}
		return inboxSend, c
	}
	if now.Sub(v.Time.Time) > unknownNodeTimeout {
		return inboxRemove, nil
	}
	return inboxWait, nil
}

// weight orders words by what may replace what: function verdict never lets a
// lighter word replace a heavier one.
func verdictRank(word string, unjudged bool) int {
	switch outcome := v1alpha1.ParseVerdict(word); {
	case outcome == v1alpha1.OutcomeFail:
		return 3
	case outcome == v1alpha1.OutcomePass && !unjudged:
		return 2
	case outcome == v1alpha1.OutcomePass:
		return 1
	default:
		return 0
	}
}

// failsArrived says whether the ChangePod knows of every pod of it that the
// letter fails: a letter that passes the batch may name one. Function verdict
// leaves alone what a person has said.
func failsRecorded(v v1alpha1.InboxVerdict, c *v1alpha1.ChangePod) bool {
	for _, said := range v.PodResults {
		mine := slices.ContainsFunc(c.Spec.PodInfos, func(p v1alpha1.PodSummary) bool {
			return p.Pod == said.Pod && (said.UID == "" || said.UID == p.UID)
		})
		if !mine || v1alpha1.ParseVerdict(said.Verdict) != v1alpha1.OutcomeFail {
			continue
		}
		got := c.Status.ResultOf(said.Pod)
		if got == nil || (got.Source == v1alpha1.SourceServer && v1alpha1.ParseVerdict(got.Verdict) != v1alpha1.OutcomeFail) {
			return false
		}
	}
	return true
}

// emptyInbox sends the verdicts that could not be handed to the Broker when
// they came, and takes out those that have arrived. It returns when to look again.
func (r *Reconciler) drainInbox(ctx context.Context, in Input) (time.Duration, error) {
	c := in.ChangeWorkload
	var keep []v1alpha1.InboxVerdict
	var again time.Duration
	for _, v := range c.Status.Inbox {
		what, batch := decideInbox(v, c, in.ChangePods, in.Now)
		key := "inbox/" + string(c.UID) + "/" + v.ID
		switch what {
		case inboxRemove:
			r.wakeups.Done(key)
			if batch == nil && !forOrder(v, c) {
				logging.FromContext(ctx).Warnw("a verdict for an unknown node is dropped", "node", v.NodeID, "stage", v.Stage)
			}
			continue
		case inboxWait:
			again = resend.Sooner(again, resend.Until(v.Time.Add(unknownNodeTimeout+time.Second), in.Now))
		case inboxSend:
			due, next := r.wakeups.Due(key)
			again = resend.Sooner(again, next)
			if due {
				if err := r.sendVerdict(ctx, c, batch, v); err != nil {
					return 0, err
				}
			}
		}
		keep = append(keep, v)
	}
	if len(keep) == len(c.Status.Inbox) {
		return again, nil
	}
	return again, r.writeInbox(ctx, c, keep)
}

func (r *Reconciler) sendVerdict(ctx context.Context, c *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod, v v1alpha1.InboxVerdict) error {
	var data events.Data = events.OrderVerdict{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Version: c.Spec.Reversion, BizExecOrderID: c.Spec.OrderID,
		NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, Unjudged: v.Unjudged, Message: v.Message, Time: v.Time,
	}
	if batch != nil {
		data = events.ChangePodVerdict{
			Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, ChangeWorkload: c.Name,
			Version: c.Spec.Reversion, BizExecOrderID: c.Spec.OrderID,
			NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, Unjudged: v.Unjudged,
			Message: v.Message, PodResults: v.PodResults, Time: v.Time,
		}
	}
	event, err := events.New(data)
	if err != nil {
		return fmt.Errorf("send a verdict of the inbox: %w", err)
	}
	r.sender.Send(ctx, event)
	return nil
}

// shrinkInbox writes the inbox by compare-and-swap: what came in meanwhile is
// not lost.
func (r *Reconciler) writeInbox(ctx context.Context, c *v1alpha1.ChangeWorkload, keep []v1alpha1.InboxVerdict) error {
	next := c.DeepCopy()
	next.Status.Inbox = keep
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(c.Namespace), fieldManager,
		c, next, statuspatch.ChangeWorkloadInbox)
	if err != nil && !apierrs.IsConflict(err) && !apierrs.IsNotFound(err) {
		return fmt.Errorf("take verdicts out of the inbox of %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil // after a conflict the watch brings the newer object
}
