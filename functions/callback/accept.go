package callback

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cenkalti/backoff/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
)

// nodeField selects a ChangePod by its node; the CRD declares it selectable.
const nodeField = "status.changePodId"

// accept makes one verdict durable.
func (r *receiver) accept(ctx context.Context, v verdict, config altershield.Config) (became, error) {
	if of, batch := r.recall(ctx, v); batch != nil {
		return r.deliverTo(ctx, v, of, batch)
	}
	in, err := persist(ctx, func() (input, error) { return r.gather(ctx, v, config) })
	if err != nil {
		return lost, err
	}
	what, batch := decide(in)
	if what == keep {
		what, batch = r.awaitNode(ctx, v, in)
	}
	switch what {
	case deliver:
		return r.deliverTo(ctx, v, releaseOf(in.workload), batch)
	case deliverOrder:
		of := releaseOf(in.workload)
		return r.deliver(ctx, r.orderData(v, of), of)
	case keep:
		return r.keepEarly(ctx, v, releaseOf(in.workload))
	default:
		return dropped, nil
	}
}

// gather finds the release that has the order, and its batch that has the node.
// All batches are read only when none has: a release can have a thousand.
func (r *receiver) gather(ctx context.Context, v verdict, config altershield.Config) (input, error) {
	in := input{check: v.check, node: v.said.NodeID, now: r.Clock.Now(), callDeadline: config.TotalDeadline}
	api := r.Change.AppV1alpha1()
	selector := labels.Set{v1alpha1.OrderLabel: v1alpha1.OrderHash(v.said.BizExecOrderID)}.String()
	workloads, err := api.ChangeWorkloads(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return input{}, fmt.Errorf("find the order: %w", err)
	}
	for i := range workloads.Items {
		if workloads.Items[i].Spec.OrderID == v.said.BizExecOrderID {
			in.workload = &workloads.Items[i]
			r.orders.Add(v.said.BizExecOrderID, releaseOf(in.workload))
		}
	}
	if what, _ := decide(in); in.workload == nil || what == deliverOrder || v.check == altershield.CheckOrder {
		return in, nil
	}
	if in.batches, err = r.batchesOf(ctx, releaseOf(in.workload), byNode(v.said.NodeID)); err != nil {
		return input{}, err
	}
	if what, _ := decide(in); what == deliver {
		return in, nil
	}
	byRelease := metav1.ListOptions{LabelSelector: labels.Set{
		v1alpha1.VersionKey: in.workload.Labels[v1alpha1.VersionKey],
	}.String()}
	in.batches, err = r.batchesOf(ctx, releaseOf(in.workload), byRelease)
	return in, err
}

func byNode(node string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: nodeField + "=" + fields.EscapeValue(node)}
}

// batchesOf lists batches of a release.
func (r *receiver) batchesOf(ctx context.Context, of release, options metav1.ListOptions) ([]v1alpha1.ChangePod, error) {
	batches, err := r.Change.AppV1alpha1().ChangePods(of.namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("find the node: %w", err)
	}
	return slices.DeleteFunc(batches.Items, func(b v1alpha1.ChangePod) bool { return !v1alpha1.OwnedBy(&b, of.uid) }), nil
}

// awaitNode waits for the node of an early verdict: that of a check which the
// server has over before it answers the start. The answer is written in
// milliseconds, as a rule, and then the verdict goes to where all go. Its sender
// waits meanwhile.
func (r *receiver) awaitNode(ctx context.Context, v verdict, early input) (outcome, *v1alpha1.ChangePod) {
	ctx, cancel := context.WithTimeout(ctx, r.StoreTimeout/earlyShare)
	defer cancel()
	var batch *v1alpha1.ChangePod
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = firstLook
	what, err := backoff.Retry(ctx, func() (outcome, error) {
		in := early
		var err error
		if in.workload, err = r.Change.AppV1alpha1().ChangeWorkloads(early.workload.Namespace).Get(ctx, early.workload.Name, metav1.GetOptions{}); err != nil {
			return keep, err
		}
		if in.workload.UID != early.workload.UID {
			return keep, backoff.Permanent(errUnknownNode)
		}
		if in.batches, err = r.batchesOf(ctx, releaseOf(in.workload), byNode(v.said.NodeID)); err != nil {
			return keep, err
		}
		what, found := decide(in)
		if what != deliver && what != deliverOrder {
			return keep, errUnknownNode
		}
		batch = found
		return what, nil
	}, backoff.WithBackOff(pause))
	if err != nil {
		return keep, nil
	}
	return what, batch
}

// errUnknownNode says that no start was answered with the node so far.
var errUnknownNode = errors.New("the node is not known yet")

// letter is a verdict as an event, and as it waits in an inbox.
type letter interface {
	events.Data
	Inbox() v1alpha1.InboxVerdict
}

// deliverTo delivers a verdict for a batch.
func (r *receiver) deliverTo(ctx context.Context, v verdict, of release, batch *v1alpha1.ChangePod) (became, error) {
	data := r.data(v, of)
	data.Name, data.UID = batch.Name, batch.UID
	return r.deliver(ctx, data, of)
}

// deliver hands the verdict to the Broker, or, when that has not accepted it in
// time, to the inbox. It may then arrive twice, which changes nothing.
func (r *receiver) deliver(ctx context.Context, data letter, of release) (became, error) {
	e, err := events.New(data)
	if err != nil {
		return malformed, errors.Join(errMalformed, err)
	}
	bounded, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	if err = r.Broker.Deliver(bounded, e); err == nil {
		return delivered, nil
	}
	logging.FromContext(ctx).Warnw("the Broker did not accept a verdict; it goes to the inbox", "id", data.ID(), "error", err)
	return r.store(ctx, inInbox, data, of)
}

// keepEarly puts a verdict for a node that is not known yet into the inbox,
// under an id of its own: whether it is a batch's or the order's is not known.
func (r *receiver) keepEarly(ctx context.Context, v verdict, of release) (became, error) {
	data := r.data(v, of)
	data.Name, data.UID = of.name, of.uid
	return r.store(ctx, early, data, of)
}

// store puts a verdict into the inbox, in the bounds that an event has. A
// release that is gone needs no verdict.
func (r *receiver) store(ctx context.Context, as became, data letter, of release) (became, error) {
	entry, err := entryOf(data)
	if err != nil {
		return malformed, errors.Join(errMalformed, err)
	}
	_, err = persist(ctx, func() (struct{}, error) {
		err := functions.AddToInbox(ctx, r.Change, of.namespace, of.name, of.uid, entry)
		if errors.Is(err, functions.ErrReleaseReplaced) || apierrors.IsNotFound(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, functions.ErrReleaseReplaced), apierrors.IsNotFound(err):
		return dropped, nil
	case err != nil:
		return lost, err
	}
	return as, nil
}

// entryOf returns the verdict as it waits in an inbox, in the bounds that an
// event has: 64 of them stand in one object.
func entryOf(data letter) (v1alpha1.InboxVerdict, error) {
	e, err := events.New(data)
	if err != nil {
		return v1alpha1.InboxVerdict{}, err
	}
	if _, ok := data.(events.OrderVerdict); ok {
		bounded, err := events.ParseOrderVerdict(e)
		return bounded.Inbox(), err
	}
	bounded, err := events.ParseChangePodVerdict(e)
	return bounded.Inbox(), err
}

// orderData is the verdict of an order as a whole.
func (r *receiver) orderData(v verdict, of release) events.OrderVerdict {
	return events.OrderVerdict{
		Namespace: of.namespace, Name: of.name, UID: of.uid, Version: of.version,
		BizExecOrderID: v.said.BizExecOrderID, NodeID: v.said.NodeID, Stage: v.said.Stage,
		Verdict: v.said.Verdict, Unjudged: v.unjudged, Message: v.said.Message, Time: metav1.NewMicroTime(r.Clock.Now()),
	}
}

// data is the verdict without the ChangePod.
func (r *receiver) data(v verdict, of release) events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: of.namespace, ChangeWorkload: of.name, Version: of.version,
		BizExecOrderID: v.said.BizExecOrderID, NodeID: v.said.NodeID, Stage: v.said.Stage,
		Verdict: v.said.Verdict, Unjudged: v.unjudged, Message: v.said.Message, PodResults: v.said.PodResults,
		Time: metav1.NewMicroTime(r.Clock.Now()),
	}
}

// persist repeats what did not work until ctx ends: the API server may be back
// in a second, a full inbox empty, and the verdict will not come again.
func persist[T any](ctx context.Context, try func() (T, error)) (T, error) {
	var last error
	result, err := backoff.Retry(ctx, func() (T, error) {
		result, err := try()
		last = err
		return result, err
	}, backoff.WithMaxElapsedTime(0))
	if err != nil && last != nil {
		err = last // worth more than the end of ctx
	}
	return result, err
}
