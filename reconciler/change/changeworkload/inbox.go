package changeworkload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// unknownNodeTimeout is how long a verdict for an unknown order node is kept: the
// answer to the start of that node may not be written yet. It is longer than any
// call to the server.
const unknownNodeTimeout = 2 * time.Minute

// signer signs an event; *eventsigning.Store implements it.
type signer interface {
	Sign(ctx context.Context, e *event.Event) error
}

// inboxAction is the action for an entry of the inbox.
type inboxAction int

const (
	// inboxSend: its batch or order is known and does not have the verdict.
	inboxSend inboxAction = iota
	// inboxWait: its node is not known yet.
	inboxWait
	// inboxRemove: its batch or order has the verdict, or its node stayed unknown.
	inboxRemove
)

// forOrder reports whether an entry is a verdict of the order check.
func forOrder(v v1alpha1.InboxVerdict, c *v1alpha1.ChangeWorkload) bool {
	return c.Status.Order.HasNode(v.NodeID)
}

// decideInbox decides what to do with an entry, and returns its batch; nil for the
// order or an unknown node.
func decideInbox(v v1alpha1.InboxVerdict, release *v1alpha1.ChangeWorkload, changePods []*v1alpha1.ChangePod, now time.Time) (inboxAction, *v1alpha1.ChangePod) {
	if forOrder(v, release) {
		got := release.Status.OrderVerdictOf(v.Stage)
		if got.Precedence() >= v1alpha1.PrecedenceOf(v.Verdict, v.WithoutRules) {
			return inboxRemove, nil
		}
		return inboxSend, nil
	}
	for _, c := range changePods {
		if !c.Status.HasNode(v.NodeID) {
			continue
		}
		got := c.Status.VerdictOf(v.Stage)
		if got.Precedence() >= v1alpha1.PrecedenceOf(v.Verdict, v.WithoutRules) && failsRecorded(v, c) {
			return inboxRemove, c
		}
		return inboxSend, c
	}
	if now.Sub(v.Time.Time).Abs() > unknownNodeTimeout {
		return inboxRemove, nil
	}
	return inboxWait, nil
}

// failsRecorded reports whether the ChangePod has each fail of a pod that the entry
// contains: an entry that passes the batch may fail one of its pods. Function
// verdict does not change the result of a person.
func failsRecorded(v v1alpha1.InboxVerdict, c *v1alpha1.ChangePod) bool {
	for _, result := range v.PodResults {
		inBatch := slices.ContainsFunc(c.Spec.PodInfos, func(p v1alpha1.PodSummary) bool {
			return p.Pod == result.Pod && (result.UID == "" || result.UID == p.UID)
		})
		if !inBatch || v1alpha1.ParseVerdict(result.Verdict) != v1alpha1.OutcomeFail {
			continue
		}
		got := c.Status.ResultOf(result.Pod)
		if got == nil || (got.Source == v1alpha1.SourceServer && v1alpha1.ParseVerdict(got.Verdict) != v1alpha1.OutcomeFail) {
			return false
		}
	}
	return true
}

// drainInbox sends the verdicts whose node is known: those that the Broker did not accept or
// could not deliver, and those that were received before their node was known. It removes those
// that were recorded, or whose node stayed unknown for unknownNodeTimeout. It returns when to try
// again.
func (r *Reconciler) drainInbox(ctx context.Context, in Input) (time.Duration, error) {
	c := in.ChangeWorkload
	var keep, dropped []v1alpha1.InboxVerdict
	var again time.Duration
	for _, v := range c.Status.Inbox {
		what, batch := decideInbox(v, c, in.ChangePods, in.Now)
		key := "inbox/" + string(c.UID) + "/" + v.ID
		switch what {
		case inboxRemove:
			r.wakeups.Done(key)
			if batch == nil && !forOrder(v, c) {
				dropped = append(dropped, v)
			}
			continue
		case inboxWait:
			again = deadline.ShorterWait(again, deadline.WaitUntil(v.Time.Add(unknownNodeTimeout+time.Second), in.Now))
		case inboxSend:
			due, next := r.wakeups.TakeDue(key)
			again = deadline.ShorterWait(again, next)
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
	if err := r.writeInbox(ctx, c, keep); err != nil {
		return again, err
	}
	for _, v := range dropped {
		logging.FromContext(ctx).Warnw("dropped a verdict for an unknown order node", "node", v.NodeID, "stage", v.Stage)
	}
	return again, nil
}

func (r *Reconciler) sendVerdict(ctx context.Context, c *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod, v v1alpha1.InboxVerdict) error {
	var data events.Data = events.OrderVerdict{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Version: c.Spec.Reversion, BizExecOrderID: c.Spec.OrderID,
		NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, WithoutRules: v.WithoutRules, Message: v.Message, Time: v.Time,
	}
	if batch != nil {
		ctx = releasetrace.OfBatch(ctx, batch)
		data = events.ChangePodVerdict{
			Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, ChangeWorkload: c.Name,
			Version: c.Spec.Reversion, BizExecOrderID: c.Spec.OrderID,
			NodeID: v.NodeID, Stage: v.Stage, Verdict: v.Verdict, WithoutRules: v.WithoutRules,
			Message: v.Message, PodResults: v.PodResults, Time: v.Time,
		}
	}
	e, err := events.New(data)
	if err != nil {
		return fmt.Errorf("build the event of verdict %s in the inbox of %s/%s: %w", v.ID, c.Namespace, c.Name, err)
	}
	if err := r.signer.Sign(ctx, &e); err != nil {
		return fmt.Errorf("sign verdict %s in the inbox of %s/%s: %w", v.ID, c.Namespace, c.Name, err)
	}
	r.sender.Send(ctx, e)
	return nil
}

// writeInbox writes the inbox by compare-and-swap, so that no new entry is lost.
func (r *Reconciler) writeInbox(ctx context.Context, c *v1alpha1.ChangeWorkload, keep []v1alpha1.InboxVerdict) error {
	next := c.DeepCopy()
	next.Status.Inbox = keep
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(c.Namespace), fieldManager,
		c, next, statuspatch.ChangeWorkloadInbox)
	if err != nil && !apierrs.IsConflict(err) && !apierrs.IsNotFound(err) {
		return fmt.Errorf("remove verdicts from the inbox of %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil // after a conflict the event of the newer object reconciles again
}
