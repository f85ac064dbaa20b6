package submit

import (
	"context"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// retrieve asks the server for the verdict of the stage and records it if it is a
// pass. Any other answer contradicts an unconfirmed pass; otherwise it has no meaning, and
// a rejection never has one.
func (f *function) retrieve(ctx context.Context, server Server, in Input) (passed bool, err error) {
	status := &in.Batch.Status
	stored := status.VerdictOf(in.Stage)
	node, answer, err := retrieveAny(ctx, server, in.Release.Spec.OrderID, in.Stage, status.Nodes(), stored)
	switch {
	case err != nil || node == "":
		return false, err
	case answer.Passed():
		return true, f.recordPass(ctx, in, node, answer)
	case stored.Unconfirmed() && !stored.Contradicted:
		contradicted := f.verdictOf(in, node, stored.Verdict)
		contradicted.WithoutRules = true
		return false, f.recorder.Record(ctx, contradicted, retrieved(answer))
	default:
		return false, nil
	}
}

// recordPass records a pass that the server returned. It implies the answer to the call.
func (f *function) recordPass(ctx context.Context, in Input, node string, answer altershield.RetrieveAnswer) error {
	if s := in.Batch.Status.SubmissionOf(in.Stage); in.Stage == v1alpha1.StagePost && s != nil && s.AnsweredTime == nil {
		err := f.storeResult(ctx, in, nil, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
			return setFinishAccepted(s, attempt, f.clock.Now())
		})
		if err != nil {
			return err
		}
	}
	return f.recorder.Record(ctx, f.verdictOf(in, node, answer.Verdict), nil)
}

// retrieveAny asks the server for the verdicts of a stage of these order nodes, one
// after another, until one has passed. For an unconfirmed verdict it asks for the node
// of that verdict only. It returns the node of the last answer, or "" if the server
// rejected all calls.
func retrieveAny(ctx context.Context, server Server, order string, stage v1alpha1.Stage, nodes []string, stored *v1alpha1.StageVerdict) (
	node string, answer altershield.RetrieveAnswer, err error) {
	switch {
	case stored.Unconfirmed():
		nodes = []string{stored.NodeID}
	case stage == v1alpha1.StagePost && len(nodes) > 1:
		nodes = nodes[:1] // only this node has a finish
	}
	for _, n := range nodes {
		a, err := server.Retrieve(ctx, altershield.Retrieve{OrderID: order, NodeID: n, Stage: stage})
		switch {
		case isRejected(err):
			continue
		case err != nil:
			return "", altershield.RetrieveAnswer{}, err
		}
		if node, answer = n, a; a.Passed() {
			break
		}
	}
	return node, answer, nil
}

// retrieved is a Retriever that returns the answer of an earlier call.
type retrieved altershield.RetrieveAnswer

// Retrieve implements verdict.Retriever.
func (r retrieved) Retrieve(context.Context, altershield.Retrieve) (altershield.RetrieveAnswer, error) {
	return altershield.RetrieveAnswer(r), nil
}

// resubmit runs the PRE check of the batch again. It returns the node if its check has
// not begun.
func (f *function) resubmit(ctx context.Context, server Server, in Input) (notBegun string, err error) {
	start := in.Batch.Status.SubmissionOf(v1alpha1.StagePre)
	accepted, notBegun, err := resubmitNode(ctx, server, in.Release.Spec.OrderID, in.Batch.Status.ChangePodID)
	if !accepted {
		return notBegun, err
	}
	batches := f.client.AppV1alpha1().ChangePods(in.Batch.Namespace)
	_, err = functions.PatchStatusFrom(ctx, batches, in.Batch, statuspatch.ChangePodSubmit, func(batch *v1alpha1.ChangePod) error {
		if batch.UID != in.Batch.UID {
			return errOutdated
		}
		setResumed(batch.Status.Submissions, start, f.clock.Now())
		return nil
	})
	return "", err
}

// resubmitNode runs the PRE check of an order node again. It returns the node if its
// check has not begun. Any other rejection means that the check runs or is over.
func resubmitNode(ctx context.Context, server Server, order, node string) (accepted bool, notBegun string, err error) {
	err = server.Resubmit(ctx, altershield.Resubmit{OrderID: order, NodeID: node})
	switch {
	case altershield.IsNotBegun(err):
		return false, node, nil
	case isRejected(err):
		return false, "", nil
	default:
		return err == nil, "", err
	}
}
