package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"
	"knative.dev/pkg/system"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// soon is how long an election may take; it takes milliseconds.
const soon = 30 * time.Second

var key = types.NamespacedName{Namespace: "shop", Name: "web"}

// follower is a reconciler that enqueues one key on promotion and remembers
// whether it led when it reconciled the key.
type follower struct {
	reconciler.LeaderAwareFuncs
	mu  sync.Mutex
	led []bool
}

func newFollower() *follower {
	return &follower{LeaderAwareFuncs: reconciler.LeaderAwareFuncs{
		PromoteFunc: func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
			enqueue(b, key)
			return nil
		},
	}}
}

func (f *follower) Reconcile(context.Context, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.led = append(f.led, f.IsLeaderFor(key))
	return nil
}

func (f *follower) reconciled() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.led)
}

// constructor returns the constructor of a controller of r.
func constructor(name string, r controller.Reconciler) injection.ControllerConstructor {
	return func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
		return controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: name, Logger: logging.FromContext(ctx)})
	}
}

// process starts a process with two reconcilers; stop ends it and waits.
func process(ctx context.Context, t *testing.T, component string) (followers []*follower, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	e := &election{component: component}
	var impls []*controller.Impl
	for i := range 2 {
		f := newFollower()
		followers = append(followers, f)
		impls = append(impls, e.join(constructor(fmt.Sprint("follower", i), f))(ctx, nil))
	}
	impls = append(impls, e.newController(ctx, nil))
	var running sync.WaitGroup
	running.Go(func() {
		if err := controller.StartAll(ctx, impls...); err != nil {
			t.Error(err)
		}
		e.running.Wait()
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return followers, stop
}

// cluster returns a context with a fake API server and short leases.
func cluster(t *testing.T) (context.Context, kubernetes.Interface) {
	t.Helper()
	t.Setenv(system.NamespaceEnvKey, "system")
	ctx, _ := rtesting.SetupFakeContext(t)
	ctx = leaderelection.WithConfig(ctx, &leaderelection.Config{
		Buckets: 2, LeaseDuration: soon, RenewDeadline: soon / 2, RetryPeriod: 10 * time.Millisecond,
	})
	return ctx, fakekubeclient.Get(ctx)
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, soon, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// holders returns who holds which Lease.
func holders(t *testing.T, kube kubernetes.Interface) map[string]string {
	t.Helper()
	list, err := kube.CoordinationV1().Leases("system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = *list.Items[i].Spec.HolderIdentity
	}
	return out
}

func lead(followers []*follower) bool {
	return !slices.ContainsFunc(followers, func(f *follower) bool { return !f.IsLeaderFor(key) })
}

func TestOneLeasePerBucketMakesAllReconcilersLead(t *testing.T) {
	ctx, kube := cluster(t)
	followers, stop := process(ctx, t, "c")
	await(t, "lead", func() bool { return lead(followers) })
	for i, f := range followers {
		await(t, "reconcile", func() bool { return len(f.reconciled()) > 0 })
		if diff := cmp.Diff([]bool{true}, f.reconciled()); diff != "" {
			t.Errorf("reconciler %d led when it reconciled (-want +got):\n%s", i, diff)
		}
	}
	await(t, "both Leases have a holder", func() bool { return len(holders(t, kube)) == 2 })
	all := holders(t, kube)
	if a, b := all["c.00-of-02"], all["c.01-of-02"]; a == "" || a != b {
		t.Errorf("the Leases are %v, not two of one process", all)
	}
	stop()
	for i, f := range followers {
		if f.IsLeaderFor(key) {
			t.Errorf("reconciler %d leads when the process has ended", i)
		}
	}
	if diff := cmp.Diff(map[string]string{"c.00-of-02": "", "c.01-of-02": ""}, holders(t, kube)); diff != "" {
		t.Errorf("the Leases are not given up (-want +got):\n%s", diff)
	}
}

func TestASecondProcessTakesOverWhenTheLeaderEnds(t *testing.T) {
	ctx, kube := cluster(t)
	first, stop := process(ctx, t, "c")
	await(t, "the first leads", func() bool { return lead(first) && len(holders(t, kube)) == 2 })
	second, _ := process(ctx, t, "c")
	other, _ := process(ctx, t, "d")
	await(t, "another component leads beside it", func() bool { return lead(other) })
	for _, f := range second {
		if f.IsLeaderFor(key) || len(f.reconciled()) > 0 {
			t.Error("two processes lead")
		}
	}
	stop()
	await(t, "the second leads", func() bool { return lead(second) })
	for _, f := range second {
		await(t, "reconcile", func() bool { return len(f.reconciled()) > 0 })
	}
}

// The API server receives nothing of the first process any more, so its Leases are not given up.
func TestASecondProcessTakesOverFromOneThatWasKilled(t *testing.T) {
	ctx, kube := cluster(t)
	// A Lease lasts a second at least.
	ctx = leaderelection.WithConfig(ctx, &leaderelection.Config{
		Buckets: 2, LeaseDuration: time.Second, RenewDeadline: 900 * time.Millisecond, RetryPeriod: 10 * time.Millisecond,
	})
	// Set before the process starts: reactors are not guarded against requests in flight.
	var killed atomic.Pointer[string]
	fakekubeclient.Get(ctx).PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		holder := *a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease).Spec.HolderIdentity
		k := killed.Load()
		return k != nil && (holder == "" || holder == *k), nil, errors.New("the process was killed")
	})
	first, stop := process(ctx, t, "c")
	await(t, "the first leads", func() bool { return lead(first) && len(holders(t, kube)) == 2 })
	before := holders(t, kube)
	leader := before["c.00-of-02"]
	killed.Store(&leader)
	stop()
	if diff := cmp.Diff(before, holders(t, kube)); diff != "" {
		t.Fatalf("the Leases are given up (-before +after):\n%s", diff)
	}
	second, _ := process(ctx, t, "c")
	await(t, "the second leads", func() bool { return lead(second) })
	for _, f := range second {
		await(t, "reconcile", func() bool { return len(f.reconciled()) > 0 })
	}
	await(t, "the second holds both Leases", func() bool {
		all := holders(t, kube)
		return all["c.00-of-02"] != leader && all["c.00-of-02"] == all["c.01-of-02"]
	})
}

func TestPromotionAndDemotionReachAllReconcilersEvenIfOneFails(t *testing.T) {
	ctx, _ := cluster(t)
	e := &election{component: "c"}
	bad := newFollower()
	bad.PromoteFunc = func(reconciler.Bucket, func(reconciler.Bucket, types.NamespacedName)) error { return context.Canceled }
	good := newFollower()
	var impls []*controller.Impl
	for _, f := range []*follower{bad, good} {
		impls = append(impls, e.join(constructor("follower", f))(ctx, nil))
	}
	if err := e.Promote(reconciler.UniversalBucket(), nil); err == nil {
		t.Error("the error of a promotion is lost")
	}
	if !bad.IsLeaderFor(key) || !good.IsLeaderFor(key) {
		t.Error("not all reconcilers lead")
	}
	if got := impls[1].WorkQueue().Len(); got != 1 {
		t.Errorf("the queue has %d keys, want 1", got)
	}
	e.Demote(reconciler.UniversalBucket())
	if bad.IsLeaderFor(key) || good.IsLeaderFor(key) {
		t.Error("a reconciler leads after its demotion")
	}
}

func TestKnativeSeesNoLeaderAwareReconcilers(t *testing.T) {
	ctx, _ := cluster(t)
	e := &election{component: "c"}
	impl := e.join(constructor("follower", newFollower()))(ctx, nil)
	if _, ok := impl.Reconciler.(reconciler.LeaderAware); ok {
		t.Error("the reconciler is leader-aware")
	}
}

func TestGeneratedReconcilersHaveTheRecorderOfBreakwater(t *testing.T) {
	ctx, kube := cluster(t)
	ctx = controller.WithEventRecorder(ctx, nil)
	var recorder record.EventRecorder
	(&election{}).join(func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		recorder = controller.GetEventRecorder(ctx)
		return constructor("follower", newFollower())(ctx, cmw)
	})(ctx, nil)
	if recorder == nil {
		t.Fatal("the generated code creates another recorder")
	}
	budget := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}} // no kind, as from a watch
	recorder.Event(budget, corev1.EventTypeWarning, "DisruptionDenied", "denied")
	await(t, "the Event of a budget", func() bool {
		list, err := kube.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1
	})
}

// failing is a reconciler that returns err.
type failing struct {
	reconciler.LeaderAwareFuncs
	err error
}

func (f *failing) Reconcile(context.Context, string) error { return f.err }

func TestFailuresOfAKeyAreForgottenOnceItIsReconciled(t *testing.T) {
	ctx, _ := cluster(t)
	f := &failing{}
	impl := (&election{}).join(constructor("failing", f))(ctx, nil)
	queue := impl.WorkQueue()
	defer queue.ShutDown()
	for range 3 {
		queue.AddRateLimited(key)
	}
	for _, tc := range []struct {
		err  error
		want int
	}{{errors.New("a failure"), 3}, {controller.NewRequeueAfter(5 * time.Second), 3}, {controller.NewRequeueAfter(time.Minute), 0}} {
		f.err = tc.err
		if err := impl.Reconciler.Reconcile(t.Context(), key.String()); !errors.Is(err, tc.err) {
			t.Errorf("%v, want %v", err, tc.err)
		}
		if n := queue.NumRequeues(key); n != tc.want {
			t.Errorf("after %v: %d failures, want %d", tc.err, n, tc.want)
		}
	}
}
