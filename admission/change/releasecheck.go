package change

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// newReleaseCheck returns the handler of the release check. Until ctx ends, it deletes
// expired ReleaseChecks in the background.
func newReleaseCheck(ctx context.Context, kinds func() workloadkinds.State, in func() settings.Settings, history suspend.History, recorder record.EventRecorder, sender events.Sender) *releasecheck.Handler {
	realClock := clock.RealClock{}
	server := releasecheck.NewCheckClient(kubeclient.Get(ctx).CoreV1(), realClock, metrics.Meter())
	answers := releasecheck.AnswerStore{Client: changeclient.Get(ctx).AppV1alpha1()}
	go wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := answers.DeleteExpired(ctx, realClock.Now()); err != nil {
			logging.FromContext(ctx).Warnw("could not delete expired ReleaseChecks", "error", err)
		}
	}, releasecheck.ExpiryInterval, 1, true)
	return &releasecheck.Handler{
		Kinds: func() []workload.Kind { return kinds().Kinds }, Settings: in, History: history, CheckClient: server, Answers: answers,
		Recorder: recorder, Sender: sender, Clock: realClock,
	}
}
