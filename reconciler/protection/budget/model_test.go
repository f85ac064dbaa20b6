package budget

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/race"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(200 / race.Slowdown), "rapid.steps": "100", "rapid.nofailfile": "true"} {
		if !given[name] {
			_ = flag.Set(name, value) // rapid defines these flags
		}
	}
	os.Exit(m.Run())
}

// TestDeletionsNeverExceedABudget runs the webhook and the controller against a model
// of the API server, with random requests, faults, delays and restarts.
//
//	go test ./reconciler/protection/budget -run NeverExceed -rapid.checks=10000  # longer
//	go test ./reconciler/protection/budget -run NeverExceed -rapid.seed=1234     # again
func TestDeletionsNeverExceedABudget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		// In the bubble, package time has a clock of its own, and the model knows when
		// all goroutines wait.
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			m := newBudgetModel(rt)
			defer m.close()
			rt.Repeat(m.actions())
			m.quiet()
		})
		// rapid expects a panic in its own goroutine, and compares the lines.
		switch {
		case failure == nil:
		case fmt.Sprintf("%T", failure) == "rapid.invalidData":
			panic(failure)
		default:
			panic(failure)
		}
	})
}

// budgetModel is a workload with budgets, its API server and the requests to delete
// its pods.
type budgetModel struct {
	t        *rapid.T
	ctx      context.Context
	cancel   context.CancelFunc
	api      *modelAPI
	workload *modelWorkload
	admitter admitter
	requests []*deletion
	asked    int
	// deleted are the pods that were deleted while they were available.
	deleted map[types.UID]bool
	// known is the newest revision that each budget's numbers were based on.
	known map[string]int64
	// guarded is the revision at which the budgets were in effect. No cache begins
	// before it: a replica that does not know a budget allows everything, and the
	// condition Guarding says so.
	guarded int64
}

func newBudgetModel(t *rapid.T) *budgetModel {
	ctx, cancel := context.WithCancel(logging.WithLogger(controller.WithEventRecorder(context.Background(), &record.FakeRecorder{}), zap.NewNop().Sugar()))
	m := &budgetModel{t: t, ctx: ctx, cancel: cancel, api: newModelAPI(), deleted: map[types.UID]bool{}, known: map[string]int64{}}
	replicas := rapid.Int32Range(2, 4).Draw(t, "replicas")
	m.workload = newModelWorkload(m.api, replicas, rapid.Bool().Draw(t, "reuses names"))
	for i := range rapid.SampledFrom([]int{1, 2, 2}).Draw(t, "budgets") {
		limit := intstr.FromInt32(rapid.SampledFrom([]int32{1, 1, 2, 2, 0}).Draw(t, "maxUnavailable"))
		byMin := rapid.Bool().Draw(t, "by minAvailable")
		m.api.writeBudget(newBudget(func(b *v1alpha1.PodUnavailableBudget) {
			b.Name, b.UID = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-web-%d", i))
			if byMin {
				least := intstr.FromInt32(max(replicas-limit.IntVal, 0))
				b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, &least
			} else {
				b.Spec.MaxUnavailable = &limit
			}
		}))
	}
	m.admitter = newStatusBudget(ctx, m.api, m.workload.set)
	m.runFor(3 * time.Second)
	m.guarded = m.api.revision
	return m
}

// close ends all goroutines.
func (m *budgetModel) close() {
	m.cancel()
	m.api.close()
	synctest.Wait()
}

func (m *budgetModel) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf(format, args...)
}
