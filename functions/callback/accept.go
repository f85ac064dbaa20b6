package callback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cloudevents/sdk-go/v2/event"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
)

// nodeField is the selectable field of ChangePods with the node.
const nodeField = "status.changePodId"

// accept makes one verdict durable.
func (r *receiver) accept(ctx context.Context, v verdict, config altershield.Config) (result, error) {
	if release, batch := r.findCached(ctx, v); batch != nil {
		return r.deliverToBatch(ctx, v, release, batch)
	}
	in, err := retryUntilDone(ctx, func() (input, error) { return r.find(ctx, v, config) })
	if err != nil {
		return resultUnhandled, err
	}
	action, batch := decide(in)
	if action == wait {
		action, batch = r.awaitNode(ctx, v, in)
	}
	switch action {
	case deliver:
		return r.deliverToBatch(ctx, v, releaseOf(in.release), batch)
	case deliverOrder:
		release := releaseOf(in.release)
		return r.deliver(releasetrace.OfRelease(ctx, in.release), r.orderVerdict(v, release), release)
	case wait:
		return r.storeEarly(ctx, v, releaseOf(in.release))
	default:
		return resultDropped, nil
	}
}

// find reads the release of the verdict's order, and the batch of its node. It lists the
// ChangePods of the version, which may be a thousand, only if no batch has the node.
func (r *receiver) find(ctx context.Context, v verdict, config altershield.Config) (input, error) {
	in := input{check: v.check, node: v.data.NodeID, now: r.Clock.Now(), callTimeout: config.TotalDeadline}
	api := r.Change.AppV1alpha1()
	selector := labels.Set{v1alpha1.OrderLabel: v1alpha1.OrderHash(v.data.BizExecOrderID)}.String()
	workloads, err := api.ChangeWorkloads(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return input{}, fmt.Errorf("list ChangeWorkloads of the order: %w", err)
	}
	for i := range workloads.Items {
		if workloads.Items[i].Spec.OrderID == v.data.BizExecOrderID {
			in.release = &workloads.Items[i]
			r.orders.Add(v.data.BizExecOrderID, releaseOf(in.release))
		}
	}
	if action, _ := decide(in); in.release == nil || action == deliverOrder || v.check == altershield.CheckOrder {
		return in, nil
	}
	if in.batches, err = r.listBatches(ctx, releaseOf(in.release), byNode(v.data.NodeID)); err != nil {
		return input{}, err
	}
	if action, _ := decide(in); action == deliver {
		return in, nil
	}
	byRelease := metav1.ListOptions{LabelSelector: labels.Set{
		v1alpha1.VersionKey: in.release.Labels[v1alpha1.VersionKey],
	}.String()}
	in.batches, err = r.listBatches(ctx, releaseOf(in.release), byRelease)
	return in, err
}

func byNode(node string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: nodeField + "=" + fields.EscapeValue(node)}
}

// listBatches lists batches of a release.
func (r *receiver) listBatches(ctx context.Context, release release, options metav1.ListOptions) ([]v1alpha1.ChangePod, error) {
	batches, err := r.Change.AppV1alpha1().ChangePods(release.namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list ChangePods of the release: %w", err)
	}
	return slices.DeleteFunc(batches.Items, func(b v1alpha1.ChangePod) bool { return !v1alpha1.OwnedBy(&b, release.uid) }), nil
}

// awaitNode waits for the node of an early verdict: the server may complete a check
// before it answers the start. Usually the node is written within milliseconds, and
// the verdict is then delivered as any other. The sender waits meanwhile.
func (r *receiver) awaitNode(ctx context.Context, v verdict, early input) (action, *v1alpha1.ChangePod) {
	ctx, cancel := context.WithTimeout(ctx, r.RequestTimeout/nodeTimeoutDivisor)
	defer cancel()
	var batch *v1alpha1.ChangePod
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = firstPollInterval
	found, err := backoff.Retry(ctx, func() (action, error) {
		in := early
		var err error
		if in.release, err = r.Change.AppV1alpha1().ChangeWorkloads(early.release.Namespace).Get(ctx, early.release.Name, metav1.GetOptions{}); err != nil {
			return wait, err
		}
		if in.release.UID != early.release.UID {
			return wait, backoff.Permanent(errUnknownNode)
		}
		if in.batches, err = r.listBatches(ctx, releaseOf(in.release), byNode(v.data.NodeID)); err != nil {
			return wait, err
		}
		next, b := decide(in)
		if next != deliver && next != deliverOrder {
			return wait, errUnknownNode
		}
		batch = b
		return next, nil
	}, backoff.WithBackOff(pause))
	if err != nil {
		return wait, nil
	}
	return found, batch
}

// errUnknownNode reports that no batch or order has the node yet.
var errUnknownNode = errors.New("unknown node")

// verdictData is a verdict as data of an event and as an inbox entry.
type verdictData interface {
	events.Data
	Inbox() v1alpha1.InboxVerdict
}

// deliverToBatch delivers a verdict for a batch.
func (r *receiver) deliverToBatch(ctx context.Context, v verdict, release release, batch *v1alpha1.ChangePod) (result, error) {
	data := r.batchVerdict(v, release)
	data.Name, data.UID = batch.Name, batch.UID
	if v.data.Stage == v1alpha1.StagePre { // of stage POST, function verdict has the batch that it wrote
		data.ChangePod = events.CopyOf(batch)
	}
	return r.deliver(releasetrace.OfBatch(ctx, batch), data, release)
}

// oneFailure is the Broker of a request with several verdicts. After one delivery failed, it sends no
// other verdict: the time that is left is needed to store them in the inbox.
type oneFailure struct {
	Deliverer
	err error
}

// Deliver implements Deliverer.
func (o *oneFailure) Deliver(ctx context.Context, e event.Event) error {
	if o.err != nil {
		return fmt.Errorf("not sent, because another verdict of the request was not delivered: %w", o.err)
	}
	o.err = o.Deliverer.Deliver(ctx, e)
	return o.err
}

// deliver sends the verdict to the Broker. If the Broker does not accept it in time,
// the verdict is stored in the inbox. It may then arrive twice, which has no further
// effect.
func (r *receiver) deliver(ctx context.Context, data verdictData, release release) (result, error) {
	e, err := events.New(data)
	if err != nil {
		return resultMalformed, errors.Join(errMalformed, err)
	}
	deliverCtx, cancel := context.WithTimeout(ctx, deliveryTime(ctx))
	defer cancel()
	if err = r.Signer.Sign(deliverCtx, &e); err == nil {
		err = r.Broker.Deliver(deliverCtx, e)
	}
	if err == nil {
		return resultDelivered, nil
	}
	logging.FromContext(ctx).Warnw("A verdict was not delivered to the Broker; storing it in the inbox", "id", data.ID(), "error", err)
	return r.store(ctx, resultInbox, data, release)
}

// deliveryTime is how long a delivery may take: deliverTimeout, and at most half of the time that is
// left for the request, so that the verdict can be stored in the inbox after it.
func deliveryTime(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(deliverTimeout, time.Until(deadline)/2)
	}
	return deliverTimeout
}

// storeEarly stores a verdict for an unknown node in the inbox. Its id is based on the
// release, because the node may be that of a batch or of the order.
func (r *receiver) storeEarly(ctx context.Context, v verdict, release release) (result, error) {
	data := r.batchVerdict(v, release)
	data.Name, data.UID = release.name, release.uid
	return r.store(ctx, resultEarly, data, release)
}

// store adds a verdict to the inbox and returns the result success. If the release was deleted
// or replaced, it drops the verdict. A pass for which there is no room does not wait: it would keep
// other verdicts from being handled.
func (r *receiver) store(ctx context.Context, success result, data verdictData, release release) (result, error) {
	data, err := events.Truncated(data)
	if err != nil {
		return resultMalformed, errors.Join(errMalformed, err)
	}
	entry := data.Inbox()
	_, err = retryUntilDone(ctx, func() (struct{}, error) {
		err := r.inbox.Add(ctx, types.NamespacedName{Namespace: release.namespace, Name: release.name}, release.uid, entry)
		if errors.Is(err, functions.ErrReleaseReplaced) || errors.Is(err, functions.ErrNoRoomForPass) || apierrors.IsNotFound(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, functions.ErrReleaseReplaced), apierrors.IsNotFound(err):
		return resultDropped, nil
	case err != nil:
		return resultUnhandled, err
	}
	return success, nil
}

// orderVerdict returns the data of a verdict on the order.
func (r *receiver) orderVerdict(v verdict, release release) events.OrderVerdict {
	return events.OrderVerdict{
		Namespace: release.namespace, Name: release.name, UID: release.uid, Version: release.version,
		BizExecOrderID: v.data.BizExecOrderID, NodeID: v.data.NodeID, Stage: v.data.Stage,
		Verdict: v.data.Verdict, WithoutRules: v.withoutRules, Message: v.data.Message, Time: metav1.NewMicroTime(r.Clock.Now()),
	}
}

// batchVerdict returns the data of a verdict on a batch, without the ChangePod.
func (r *receiver) batchVerdict(v verdict, release release) events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: release.namespace, ChangeWorkload: release.name, Version: release.version,
		BizExecOrderID: v.data.BizExecOrderID, NodeID: v.data.NodeID, Stage: v.data.Stage,
		Verdict: v.data.Verdict, WithoutRules: v.withoutRules, Message: v.data.Message, PodResults: v.data.PodResults,
		Time: metav1.NewMicroTime(r.Clock.Now()),
	}
}

// retryUntilDone retries until ctx ends: the API server may recover, a full inbox may
// be emptied, and the server does not repeat the verdict.
func retryUntilDone[T any](ctx context.Context, try func() (T, error)) (T, error) {
	var last error
	value, err := backoff.Retry(ctx, func() (T, error) {
		value, err := try()
		last = err
		return value, err
	}, backoff.WithMaxElapsedTime(0))
	if err != nil && last != nil {
		err = last // more specific than the end of ctx
	}
	return value, err
}
