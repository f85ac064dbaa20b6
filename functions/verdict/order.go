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
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// OrderInput is all that a decision about a verdict of an order depends on.
type OrderInput struct {
	Workload *v1alpha1.ChangeWorkload
	Said     events.OrderVerdict
	// Asked, Confirmed and Now are as in Input.
	Asked, Confirmed bool
	Now              metav1.MicroTime
}

// DecideOrder says what becomes of a verdict of an order as a whole, and the
// verdicts as they have to be after that. The rules are those of a batch.
func DecideOrder(in OrderInput) (Outcome, []v1alpha1.StageVerdict) {
	status, said := in.Workload.Status, in.Said
	switch {
	case said.UID != in.Workload.UID:
		return OtherObject, status.OrderVerdicts
	case status.Order.Node() == "" || said.NodeID != status.Order.Node():
		return OldNode, status.OrderVerdicts
	}
	next, outcome := weigh(status.OrderVerdictOf(said.Stage), v1alpha1.StageVerdict{
		Stage: said.Stage, Verdict: said.Verdict, Unjudged: said.Unjudged, Message: said.Message, NodeID: said.NodeID, Time: in.Now,
	}, in.Asked, in.Confirmed)
	if outcome != Store {
		return outcome, status.OrderVerdicts
	}
	return Store, withVerdict(status.OrderVerdicts, next)
}

// RecordOrder stores what was said of an order as a whole, as Record does for a
// batch.
func (r *Recorder) RecordOrder(ctx context.Context, said events.OrderVerdict, server Retriever) error {
	in := OrderInput{Said: said}
	outcome, err := r.applyOrder(ctx, in)
	if err == nil && outcome == AskRetrieve {
		in.Asked, in.Confirmed = true, confirm(ctx, altershield.Retrieve{
			OrderID: said.BizExecOrderID, NodeID: said.NodeID, Stage: said.Stage,
		}, server)
		outcome, err = r.applyOrder(ctx, in)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.received.Add(ctx, 1, "ORDER_"+string(said.Stage), string(v1alpha1.ParseVerdict(said.Verdict)), string(outcome))
	logging.FromContext(ctx).Infow("verdict of an order", "changeworkload", said.Namespace+"/"+said.Name, "node", said.NodeID,
		"stage", said.Stage, "verdict", said.Verdict, "outcome", outcome)
	return nil
}

func (r *Recorder) applyOrder(ctx context.Context, in OrderInput) (Outcome, error) {
	var outcome Outcome
	workloads := r.client.AppV1alpha1().ChangeWorkloads(in.Said.Namespace)
	_, err := functions.PatchStatus(ctx, workloads, in.Said.Name, statuspatch.ChangeWorkloadVerdict, func(w *v1alpha1.ChangeWorkload) error {
		in.Workload, in.Now = w, metav1.NewMicroTime(r.clock.Now())
		outcome, w.Status.OrderVerdicts = DecideOrder(in)
		return nil
	})
	return outcome, err
}
