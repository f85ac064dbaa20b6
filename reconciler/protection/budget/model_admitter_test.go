package budget

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/admission"
	webhook "github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

// Processes of an admitter: two replicas of the webhook and the controller.
const (
	webhookReplicas   = 2
	controllerProcess = 2
	processes         = 3
)

// admitter is a design of the budget. The model asks it, moves its caches, and
// checks what it allows. Its processes use only the model's API server and the clock
// of package time.
type admitter interface {
	// Admit decides a request at a replica. It is called in a goroutine of its own.
	Admit(ctx context.Context, replica int, req *admissionv1.AdmissionRequest) admission.Answer
	// Deliver delivers up to n watch events of pods, and of budgets, to the caches of
	// a process.
	Deliver(process, pods, budgets int)
	// Reconcile starts what the controller does without a request. Unless forced, it
	// does so only if something is due.
	Reconcile(forced bool)
	// Restart kills a process and starts it. Its caches begin at that revision.
	Restart(process int, revision int64)
	// Known returns the revision of the pods that a budget's decisions are based on.
	Known(budget string) int64
	// Charged returns the pods that are charged to a budget.
	Charged(budget string) sets.Set[types.UID]
	// Room returns how many more pods a budget lets become unavailable.
	Room(budget string) int32
}

// statusBudget is the present design: charges are in the budget's status.
type statusBudget struct {
	ctx        context.Context
	api        *modelAPI
	set        *appsv1.ReplicaSet
	replicas   [webhookReplicas]*webhookReplica
	controller *modelController
}

var _ admitter = (*statusBudget)(nil)

// webhookReplica is one replica of the webhook.
type webhookReplica struct {
	*process
	guard   webhook.Guard
	budgets cache.Indexer
	// delivered is the number of budget events in the cache.
	delivered int
}

// modelController is the controller.
type modelController struct {
	*process
	*Reconciler
	pods, budgets                   cache.Indexer
	podsDelivered, budgetsDelivered int
	running, dirty                  bool
	due                             time.Time
}

// chargeTimeout is how long a charge without an effect is kept: the default of
// --charge-timeout.
const chargeTimeout = time.Minute

func newStatusBudget(ctx context.Context, a *modelAPI, set *appsv1.ReplicaSet) *statusBudget {
	s := &statusBudget{ctx: ctx, api: a, set: set}
	for i := range processes {
		s.Restart(i, a.revision)
	}
	return s
}

// setOwners are the owners of all pods: the ReplicaSet.
type setOwners struct{ set *appsv1.ReplicaSet }

func (o setOwners) Chain(context.Context, string, []metav1.OwnerReference, bool) (budget.Chain, error) {
	return budget.Chain{{Group: "apps", Kind: "ReplicaSet", Name: o.set.Name, UID: o.set.UID}}, nil
}

func (o setOwners) SelectorOf(context.Context, string, []metav1.OwnerReference) (ownerchain.Selection, error) {
	return ownerchain.Selection{}, nil
}

func (o setOwners) RevisionsWithTraffic(context.Context, string, string, bool) ([]string, error) {
	return nil, nil
}

func newNamespaceIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// Restart implements admitter.
func (s *statusBudget) Restart(process int, revision int64) {
	if process == controllerProcess {
		s.restartController(revision)
		return
	}
	name := "webhook-" + strconv.Itoa(process)
	if old := s.replicas[process]; old != nil {
		s.api.kill(old.process)
	}
	r := &webhookReplica{process: newProcess(s.api, name), budgets: newNamespaceIndexer()}
	lister, client, pods := listers.NewPodUnavailableBudgetLister(r.budgets), budgetClient{process: r.process}, podClient{process: r.process}
	references := webhook.NewChargeReferences()
	r.guard = webhook.Guard{
		Budgets: lister, Client: client, Pods: pods, PodLists: podlist.ForDeletions(pods), Owners: setOwners{s.set},
		Namespaces: webhook.Namespaces{Lister: corelisters.NewNamespaceLister(newNamespaceIndexer())}, // none terminates
		PDBs:       webhook.PodDisruptionBudgets{Lister: policylisters.NewPodDisruptionBudgetLister(newNamespaceIndexer())},
		Commit:     webhook.NewCommitter(lister, client, references, nil),
		Recorder:   &record.FakeRecorder{}, Recent: webhook.NewRecentDeletions(), References: references,
		Replica: name, FailsClosed: func() bool { return true },
	}
	s.replicas[process] = r
	// The first list shows the last state of each budget at that revision.
	r.delivered = s.api.budgetEventsUntil(revision)
	for _, b := range s.api.lastBudgets(r.delivered) {
		r.observe(b)
	}
}

func newProcess(a *modelAPI, name string) *process { return &process{api: a, name: name} }

// observe stores a budget in the cache.
func (r *webhookReplica) observe(b *v1alpha1.PodUnavailableBudget) {
	old, ok, err := r.budgets.Get(b)
	if err != nil {
		panic(err)
	}
	if err := r.budgets.Update(b); err != nil {
		panic(err)
	}
	var before *v1alpha1.PodUnavailableBudget
	if ok {
		before = old.(*v1alpha1.PodUnavailableBudget)
	}
	r.guard.Recent.Observe(before, b)
}

func (s *statusBudget) restartController(revision int64) {
	if s.controller != nil {
		s.api.kill(s.controller.process)
	}
	c := &modelController{process: newProcess(s.api, "controller"), pods: newNamespaceIndexer(), budgets: newNamespaceIndexer(), dirty: true}
	sets := newNamespaceIndexer()
	if err := sets.Add(s.set); err != nil {
		panic(err)
	}
	none := newNamespaceIndexer()
	c.Reconciler = &Reconciler{
		client: budgetClient{process: c.process}, podLister: corelisters.NewPodLister(c.pods), podLists: podlist.New(podClient{process: c.process}, maxListed, budget.TrimPod),
		owners: &owners{
			deployments: appslisters.NewDeploymentLister(none), replicaSets: appslisters.NewReplicaSetLister(sets),
			statefulSets: appslisters.NewStatefulSetLister(none), daemonSets: appslisters.NewDaemonSetLister(none),
			mapper: newMapper(), cache: utilcache.NewExpiring(), services: &knativeServices{},
		},
		podWatch: &podWatch{}, charges: newChargeTimes(clock.RealClock{}, chargeTimeout), throttle: newThrottle(clock.RealClock{}),
		guarding: newGuardingCheck(allReplicas{}), refunded: metrics.NewCounter(noop.Meter{}, "breakwater_budget_charges_refunded_total"),
	}
	s.controller = c
	// The first list shows the pods of that revision, without those deleted before.
	for _, p := range s.api.podsAt(revision) {
		c.storePod(p, false)
	}
	for c.podsDelivered < len(s.api.podEvents) && s.api.podEvents[c.podsDelivered].revision <= revision {
		c.podsDelivered++
	}
	c.budgetsDelivered = s.api.budgetEventsUntil(revision)
	for _, b := range s.api.lastBudgets(c.budgetsDelivered) {
		c.storeBudget(b)
	}
}

func (c *modelController) storePod(p *corev1.Pod, deleted bool) {
	var err error
	if deleted {
		err = c.pods.Delete(p)
	} else {
		err = c.pods.Update(p)
	}
	if err != nil {
		panic(err)
	}
	c.podWatch.observe(p)
	c.dirty = true
}

func (c *modelController) storeBudget(b *v1alpha1.PodUnavailableBudget) {
	if err := c.budgets.Update(b); err != nil {
		panic(err)
	}
	c.dirty = true
}

// Admit implements admitter.
func (s *statusBudget) Admit(ctx context.Context, replica int, req *admissionv1.AdmissionRequest) admission.Answer {
	return s.replicas[replica].guard.Admit(ctx, req)
}

// Deliver implements admitter.
func (s *statusBudget) Deliver(process, pods, budgets int) {
	if process != controllerProcess {
		r := s.replicas[process]
		for ; budgets > 0 && r.delivered < len(s.api.budgetEvents); budgets-- {
			r.observe(s.api.budgetEvents[r.delivered].object)
			r.delivered++
		}
		return
	}
	c := s.controller
	for ; pods > 0 && c.podsDelivered < len(s.api.podEvents); pods-- {
		e := s.api.podEvents[c.podsDelivered]
		c.podsDelivered++
		c.storePod(e.object, e.deleted)
	}
	for ; budgets > 0 && c.budgetsDelivered < len(s.api.budgetEvents); budgets-- {
		c.storeBudget(s.api.budgetEvents[c.budgetsDelivered].object)
		c.budgetsDelivered++
	}
}

// Reconcile implements admitter.
func (s *statusBudget) Reconcile(forced bool) {
	c := s.controller
	due := c.dirty || !c.due.IsZero() && !time.Now().Before(c.due)
	if c.running || !forced && !due {
		return
	}
	c.running, c.dirty, c.due = true, false, time.Time{}
	go func() {
		defer func() { c.running = false }()
		for _, name := range c.budgets.ListKeys() {
			cached, _, err := c.budgets.GetByKey(name)
			if err != nil {
				panic(err)
			}
			err = c.ReconcileKind(s.ctx, cached.(*v1alpha1.PodUnavailableBudget).DeepCopy())
			if again, wait := controller.IsRequeueKey(err); again {
				if at := time.Now().Add(wait); c.due.IsZero() || at.Before(c.due) {
					c.due = at
				}
			} else if err != nil {
				c.dirty = true
			}
		}
	}()
}

// Known implements admitter.
func (s *statusBudget) Known(name string) int64 {
	revision, err := strconv.ParseInt(s.api.budgets[name].Status.PodsResourceVersion, 10, 64)
	if err != nil {
		return 0 // not computed yet
	}
	return revision
}

// Charged implements admitter.
func (s *statusBudget) Charged(name string) sets.Set[types.UID] {
	return sets.KeySet(s.api.budgets[name].Status.DeletedPods)
}

// Room implements admitter.
func (s *statusBudget) Room(name string) int32 { return s.api.budgets[name].Status.UnavailableAllowed }
