package wiring

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
)

// OnceSynced returns a controller that calls start once, when the caches of the
// process are synced. sharedmain starts controllers only then. start must not
// block: the metrics of the queue would show a worker that hangs.
func OnceSynced(ctx context.Context, queue string, start func()) *controller.Impl {
	impl := controller.NewContext(ctx, &starter{start: sync.OnceFunc(start)},
		controller.ControllerOptions{WorkQueueName: queue, Logger: logging.FromContext(ctx).Named(queue), Concurrency: 1})
	impl.EnqueueKey(types.NamespacedName{Name: queue})
	return impl
}

// starter calls start for each key. It runs without a leader.
type starter struct {
	reconciler.LeaderAwareFuncs
	start func()
}

// Reconcile implements controller.Reconciler.
func (s *starter) Reconcile(context.Context, string) error {
	s.start()
	return nil
}
