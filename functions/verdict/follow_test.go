package verdict_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// judgedBatches is a Follower that records the batches whose POST verdict is stored.
type judgedBatches struct{ all []types.UID }

func (*judgedBatches) Prepare(context.Context, events.ChangePodVerdict) verdict.FollowUp { return nil }

func (j *judgedBatches) PostVerdictStored(batch types.UID) { j.all = append(j.all, batch) }

// An answer to a finish that is not stored yet is dropped when the verdict is: a verdict that
// has no effect does not replace it.
func TestOnlyAStoredVerdictReplacesTheAnswerOfTheServer(t *testing.T) {
	for node, want := range map[string]int{"n": 1, "earlier": 0} {
		t.Run(node, func(t *testing.T) {
			c := ft.New(t, ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			server := ft.NewServerDouble(t, c, "")
			recorder, follower := verdict.NewRecorder(c.Change, server.Clock, noop.Meter{}), &judgedBatches{}
			recorder.SetFollower(follower)
			function := verdict.New(recorder, server.Clients, ft.Keys(), eventsigning.NewJudgeKeys(c.Kube.CoreV1(), server.Clock))
			if err := function(t.Context(), verdictOf(t, v1alpha1.StagePost, "fail", node)); err != nil {
				t.Fatal(err)
			}
			if len(follower.all) != want {
				t.Errorf("PostVerdictStored was called for %v", follower.all)
			}
		})
	}
}
