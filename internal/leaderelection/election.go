// Package leaderelection runs the controllers of a process with one leader
// election for all of them. Knative elects a leader for each reconciler and
// bucket, with Leases that are named after Go packages. Here a process has one
// Lease for each bucket, named after its component: the process that acquires
// the Lease leads the bucket in all its reconcilers.
package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/apiconnection"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// queueName is the name of the queue of the controller that starts the election.
const queueName = "leader-election"

// LeaseName returns the name of the Lease of one bucket. RBAC names it too.
func LeaseName(component string, bucket, buckets uint32) string {
	return fmt.Sprintf("%s.%02d-of-%02d", component, bucket, buckets)
}

// Main runs controllers as sharedmain does, until ctx ends. It returns when the
// workers have stopped and the Leases are given up.
func Main(ctx context.Context, component string, config *rest.Config, constructors ...injection.ControllerConstructor) {
	apiconnection.DetectLoss()
	all, wait := Join(component, constructors...)
	// Without this, sharedmain would add the elections of Knative.
	ctx = sharedmain.WithHADisabled(ctx)
	// The global meter forwards the metric to the meter provider that sharedmain sets later.
	metrics.ObserveBuild(metrics.Meter())
	sharedmain.MainWithConfig(ctx, component, config, all...)
	wait()
}

// Join returns the constructors with one election for all of them, and a function
// that waits until the election has ended and the Leases are given up.
func Join(component string, constructors ...injection.ControllerConstructor) (joined []injection.ControllerConstructor, wait func()) {
	e := &election{component: component}
	all := make([]injection.ControllerConstructor, 0, len(constructors)+1)
	for _, c := range constructors {
		all = append(all, e.join(c))
	}
	return append(all, e.newController), e.running.Wait
}

// election promotes and demotes all reconcilers of a process together.
type election struct {
	component string
	// members is complete before the election starts.
	members []member
	// change is locked while members are promoted or demoted. Promotion lists
	// objects; a demotion must not overtake it.
	change sync.Mutex
	// running ends when the Leases are given up.
	running sync.WaitGroup
}

// member is one controller of the process.
type member struct {
	reconciler.LeaderAware
	// enqueue adds a key to the controller's queue if the bucket has it.
	enqueue func(reconciler.Bucket, types.NamespacedName)
}

// join adds the controller that a constructor returns to the election. The recorder of the context
// replaces that of generated reconcilers, which drops Events of an object after the first 25.
func (e *election) join(construct injection.ControllerConstructor) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		ctx = controller.WithEventRecorder(ctx, eventrecorder.New(ctx, kubeclient.Get(ctx), eventrecorder.Breakwater))
		impl := construct(ctx, cmw)
		aware, ok := impl.Reconciler.(reconciler.LeaderAware)
		if !ok {
			logging.FromContext(ctx).Panicf("reconciler %T of %s is not leader-aware", impl.Reconciler, impl.Name)
		}
		e.members = append(e.members, member{aware, impl.MaybeEnqueueBucketKey})
		impl.Reconciler = withoutElection{impl.Reconciler, impl.WorkQueue()}
		return impl
	}
}

// withoutElection hides that a reconciler is leader-aware. Knative would promote it for all keys at once.
type withoutElection struct {
	controller.Reconciler
	queue workqueue.TypedRateLimitingInterface[any]
}

// longWait is the least wait of a key that was reconciled. A shorter one is a limit of a rate, or a retry.
const longWait = 10 * time.Second

// Reconcile implements controller.Reconciler. The queue forgets the failures of a key that is to be reconciled after longWait
// or more. Knative forgets them only after nil: those of weeks would add up, so that a further one is retried a quarter of
// an hour later.
func (w withoutElection) Reconcile(ctx context.Context, key string) error {
	err := w.Reconciler.Reconcile(ctx, key)
	if again, wait := controller.IsRequeueKey(err); again && wait >= longWait {
		if namespace, name, invalid := cache.SplitMetaNamespaceKey(key); invalid == nil {
			w.queue.Forget(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return err
}

// Promote implements reconciler.LeaderAware.
func (e *election) Promote(b reconciler.Bucket, _ func(reconciler.Bucket, types.NamespacedName)) error {
	e.change.Lock()
	defer e.change.Unlock()
	var errs []error
	for _, m := range e.members {
		errs = append(errs, m.Promote(b, m.enqueue))
	}
	return errors.Join(errs...)
}

// Demote implements reconciler.LeaderAware.
func (e *election) Demote(b reconciler.Bucket) {
	e.change.Lock()
	defer e.change.Unlock()
	for _, m := range e.members {
		m.Demote(b)
	}
}

// elector returns what runs the election; config has the buckets and the durations.
func (e *election) elector(ctx context.Context, kube kubernetes.Interface, config *leaderelection.Config) (leaderelection.Elector, error) {
	cc := config.GetComponentConfig(e.component)
	cc.LeaseName = func(bucket uint32) string { return LeaseName(e.component, bucket, cc.Buckets) }
	ctx = leaderelection.WithStandardLeaderElectorBuilder(ctx, kube, cc)
	elector, err := leaderelection.BuildElector(ctx, e, queueName, nil)
	if err != nil {
		return nil, fmt.Errorf("build elector of %s: %w", e.component, err)
	}
	return elector, nil
}

// newController returns the controller that starts the election once the caches
// are synced: a promotion lists objects.
func (e *election) newController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx).Named(queueName)
	config, err := sharedmain.GetLeaderElectionConfig(ctx)
	if err != nil {
		logger.Fatalw("could not read the leader election configuration", "error", err)
	}
	elector, err := e.elector(ctx, kubeclient.Get(ctx), config)
	if err != nil {
		logger.Fatalw("could not set up leader election", "error", err)
	}
	return wiring.OnceSynced(ctx, queueName, func() { e.running.Go(func() { elector.Run(ctx) }) })
}
