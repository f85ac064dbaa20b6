package verdict

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// Retriever asks the server for a verdict that it has; *altershield.Client is one.
type Retriever interface {
	Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error)
}

// Recorder writes status.verdicts and status.podResults of ChangePods, and
// status.orderVerdicts of ChangeWorkloads. It is the one writer of these fields beside people: function submit, which learns
// a verdict when it asks again after a lost answer, hands it to a Recorder
// instead of writing it, so that one decision governs every write.
type Recorder struct {
	client   versioned.Interface
	clock    clock.PassiveClock
	received metrics.Counter
}

// NewRecorder returns a recorder.
func NewRecorder(client versioned.Interface, clock clock.PassiveClock, meter metric.Meter) *Recorder {
	return &Recorder{client: client, clock: clock, received: metrics.NewCounter(meter, "breakwater_verdicts_total")}
}

// Record stores what was said of a ChangePod, if it tells more than what is
// there. A pass that came with no rule is asked about through server, which
// may be nil. That the ChangePod is gone is no error.
func (r *Recorder) Record(ctx context.Context, said events.ChangePodVerdict, server Retriever) error {
	in := Input{Said: said}
	decision, err := r.apply(ctx, in)
	if err == nil && decision.Outcome == AskRetrieve {
		in.Asked, in.Confirmed = true, confirm(ctx, altershield.Retrieve{
			OrderID: said.BizExecOrderID, NodeID: said.NodeID, Stage: said.Stage,
		}, server)
		decision, err = r.apply(ctx, in)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.received.Add(ctx, 1, string(said.Stage), string(v1alpha1.ParseVerdict(said.Verdict)), string(decision.Outcome))
	logging.FromContext(ctx).Infow("verdict", "changepod", said.Namespace+"/"+said.Name, "node", said.NodeID,
		"stage", said.Stage, "verdict", said.Verdict, "outcome", decision.Outcome)
	return nil
}

// apply decides on the ChangePod as it is and writes by compare-and-swap.
func (r *Recorder) apply(ctx context.Context, in Input) (Decision, error) {
	var decision Decision
	pods := r.client.AppV1alpha1().ChangePods(in.Said.Namespace)
	_, err := functions.PatchStatus(ctx, pods, in.Said.Name, statuspatch.ChangePodVerdict, func(pod *v1alpha1.ChangePod) error {
		in.Pod, in.Now = pod, r.clock.Now()
		decision = Decide(in)
		pod.Status.Verdicts, pod.Status.PodResults = decision.Verdicts, decision.PodResults
		return nil
	})
	return decision, err
}

// confirm asks whether somebody stands behind a pass that came with no rule.
// Only a pass is believed. No answer is no verdict either, and it is stored as
// such at once: waiting for the server would keep the fact from the release.
func confirm(ctx context.Context, question altershield.Retrieve, server Retriever) bool {
	if server == nil {
		return false
	}
	answer, err := server.Retrieve(ctx, question)
	if err != nil {
		logging.FromContext(ctx).Warnw("a pass without rules could not be confirmed", "node", question.NodeID, "error", err)
		return false
	}
	return answer.Passed()
}
