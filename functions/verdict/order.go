package verdict

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// OrderInput has everything that a decision about a verdict of an order depends on.
type OrderInput struct {
	Release  *v1alpha1.ChangeWorkload
	Received events.OrderVerdict
	// Retrieved and Now are as in Input.
	Retrieved Retrieved
	Now       metav1.MicroTime
}

// DecideOrder returns the action for a verdict of an order, and the verdicts to
// store. The rules are those for batches.
func DecideOrder(in OrderInput) (Action, []v1alpha1.StageVerdict) {
	status, received := in.Release.Status, in.Received
	switch {
	case received.UID != in.Release.UID:
		return OtherObject, status.OrderVerdicts
	case !status.Order.HasNode(received.NodeID):
		return UnknownNode, status.OrderVerdicts
	}
	next, action := compare(status.OrderVerdictOf(received.Stage), v1alpha1.StageVerdict{
		Stage: received.Stage, Verdict: received.Verdict, UnconfirmedPass: received.WithoutRules, Message: received.Message, NodeID: received.NodeID, Time: in.Now,
	}, in.Retrieved)
	if action != Store {
		return action, status.OrderVerdicts
	}
	return Store, withVerdict(status.OrderVerdicts, next)
}

// RecordOrder stores a verdict of an order, as Record does for a batch.
func (r *Recorder) RecordOrder(ctx context.Context, received events.OrderVerdict, server Retriever) error {
	in := OrderInput{Received: received}
	action, err := r.applyOrder(ctx, in)
	if err == nil && action == AskRetrieve {
		in.Retrieved = retrieve(ctx, altershield.Retrieve{
			OrderID: received.BizExecOrderID, NodeID: received.NodeID, Stage: received.Stage,
		}, server)
		action, err = r.applyOrder(ctx, in)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.received.Add(ctx, 1, "ORDER_"+string(received.Stage), string(v1alpha1.ParseVerdict(received.Verdict)), string(action))
	logging.FromContext(ctx).Infow("Order verdict handled", "changeworkload", received.Namespace+"/"+received.Name, "node", received.NodeID,
		"stage", received.Stage, "verdict", received.Verdict, "action", action)
	return nil
}

func (r *Recorder) applyOrder(ctx context.Context, in OrderInput) (Action, error) {
	var action Action
	releases := r.client.AppV1alpha1().ChangeWorkloads(in.Received.Namespace)
	stored, err := functions.PatchStatus(ctx, releases, in.Received.Name, statuspatch.ChangeWorkloadVerdict, func(w *v1alpha1.ChangeWorkload) error {
		in.Release, in.Now = w, metav1.NewMicroTime(r.clock.Now())
		action, w.Status.OrderVerdicts = DecideOrder(in)
		return nil
	})
	if err == nil && action == Store {
		v := in.Received
		releasetrace.OrderVerdict(ctx, stored, releasetrace.Verdict{
			Judge: v1alpha1.JudgeServer, Stage: v.Stage, Verdict: v.Verdict, Received: v.Time.Time, Stored: in.Now.Time,
		})
	}
	return action, err
}
