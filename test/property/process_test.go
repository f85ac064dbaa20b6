package property

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	nodeinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/node"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	metriccheckinformer "github.com/breakwater-dev/breakwater/client/injection/informers/judge/v1alpha1/metriccheck"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	judgelisters "github.com/breakwater-dev/breakwater/client/listers/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/changepod"
	"github.com/breakwater-dev/breakwater/reconciler/change/changeworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// controllerName is the name of the controller as process and as writer.
const controllerName = "controller"

// The informers, with the listers of their kinds.
type (
	revisions       struct{ *informer }
	replicaSets     struct{ *informer }
	pods            struct{ *informer }
	nodes           struct{ *informer }
	namespaces      struct{ *informer }
	changeWorkloads struct{ *informer }
	changePods      struct{ *informer }
	opsConfigInfoes struct{ *informer }
	metricChecks    struct{ *informer }
)

func (i revisions) Lister() appslisters.ControllerRevisionLister {
	return appslisters.NewControllerRevisionLister(i.indexer)
}
func (i replicaSets) Lister() appslisters.ReplicaSetLister {
	return appslisters.NewReplicaSetLister(i.indexer)
}
func (i pods) Lister() corelisters.PodLister   { return corelisters.NewPodLister(i.indexer) }
func (i nodes) Lister() corelisters.NodeLister { return corelisters.NewNodeLister(i.indexer) }
func (i namespaces) Lister() corelisters.NamespaceLister {
	return corelisters.NewNamespaceLister(i.indexer)
}
func (i changeWorkloads) Lister() listers.ChangeWorkloadLister {
	return listers.NewChangeWorkloadLister(i.indexer)
}
func (i changePods) Lister() listers.ChangePodLister { return listers.NewChangePodLister(i.indexer) }
func (i opsConfigInfoes) Lister() listers.OpsConfigInfoLister {
	return listers.NewOpsConfigInfoLister(i.indexer)
}

func (i metricChecks) Lister() judgelisters.MetricCheckLister {
	return judgelisters.NewMetricCheckLister(i.indexer)
}

// work is a key in the queue of a reconciler.
type work struct{ kind, key string }

// process is the controller's process: caches, reconcilers and queues. A crash
// loses all of them.
type process struct {
	api         *api
	informers   []*informer
	seen        map[string]int // number of applied journal entries by informer
	reconcilers map[string]*controller.Impl
	due         map[work]time.Time
	// at is the work in progress.
	at work
}

// start starts a process with current caches.
func start(w *fixture) *process {
	p := &process{api: w.api, seen: map[string]int{}, reconcilers: map[string]*controller.Impl{}, due: map[work]time.Time{}}
	kube, change := &kubefake.Clientset{}, &fake.Clientset{}
	kube.AddReactor("*", "*", w.api.react(controllerName))
	change.AddReactor("*", "*", w.api.react(controllerName))

	ctx := logging.WithLogger(context.Background(), zap.NewNop().Sugar())
	ctx = controller.WithEventRecorder(ctx, &record.FakeRecorder{})
	ctx = contextclock.With(ctx, w.clock)
	ctx = context.WithValue(ctx, kubeclient.Key{}, kube)
	ctx = context.WithValue(ctx, changeclient.Key{}, change)
	workloads := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	workloads.PrependReactor("*", "*", w.api.reactUnstructured(controllerName))
	ctx = context.WithValue(ctx, dynamicclient.Key{}, workloads)
	watched := func(resource string) *informer {
		i := newInformer(resource)
		p.informers = append(p.informers, i)
		return i
	}
	ctx = workloadinformer.WithInformers(ctx, func(k workload.Kind) cache.SharedIndexInformer {
		i := watched(k.Resource)
		i.kind = &k
		return i
	})
	ctx = context.WithValue(ctx, revisioninformer.Key{}, revisions{watched("controllerrevisions")})
	ctx = context.WithValue(ctx, replicasetinformer.Key{}, replicaSets{watched("replicasets")})
	ctx = context.WithValue(ctx, podinformer.Key{}, pods{watched("pods")})
	ctx = context.WithValue(ctx, nodeinformer.Key{}, nodes{watched("nodes")})
	ctx = context.WithValue(ctx, namespaceinformer.Key{}, namespaces{watched("namespaces")})
	ctx = context.WithValue(ctx, changeworkloadinformer.Key{}, changeWorkloads{watched("changeworkloads")})
	ctx = context.WithValue(ctx, changepodinformer.Key{}, changePods{watched("changepods")})
	configs := watched("opsconfiginfoes")
	ctx = context.WithValue(ctx, opsconfiginfoinformer.Key{}, opsConfigInfoes{configs})
	ctx = context.WithValue(ctx, metriccheckinformer.Key{}, metricChecks{newInformer("metricchecks")}) // there are none

	static := configmap.NewStaticWatcher(w.configMap())
	calls := callqueue.New(w.clock)
	p.reconcilers["changeworkload"] = changeworkload.NewController(ctx, static, w, calls)
	p.reconcilers["changepod"] = changepod.NewController(ctx, static, w, calls)
	for _, i := range p.informers {
		for of, o := range w.api.objects {
			if of.resource == i.resource {
				_ = i.add(o) // it has the kind of the informer
			}
		}
		p.seen[i.resource] = len(w.api.journal)
	}
	for _, h := range configs.handlers {
		for _, o := range configs.indexer.List() {
			h.OnAdd(o, true) // the settings; they do not change
		}
	}
	for _, impl := range p.reconcilers {
		_ = impl.Reconciler.(reconciler.LeaderAware).Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {})
	}
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		p.enqueue("changeworkload", c, w.clock.Now())
	}
	for _, c := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		p.enqueue("changepod", c, w.clock.Now())
	}
	return p
}

// stop ends the goroutines of the unused work queues.
func (p *process) stop() {
	for _, impl := range p.reconcilers {
		impl.WorkQueue().ShutDown()
	}
}

func (p *process) enqueue(kind string, o object, at time.Time) {
	w := work{kind, o.GetNamespace() + "/" + o.GetName()}
	if old, ok := p.due[w]; !ok || at.Before(old) {
		p.due[w] = at
	}
}

// behind returns the informers that have not applied every write.
func (p *process) behind() []*informer {
	var out []*informer
	for _, i := range p.informers {
		if p.next(i) >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// next returns the index of an informer's next write in the journal, or -1.
func (p *process) next(i *informer) int {
	for n := p.seen[i.resource]; n < len(p.api.journal); n++ {
		if p.api.journal[n].id.resource == i.resource {
			return n
		}
	}
	p.seen[i.resource] = len(p.api.journal)
	return -1
}

// sync applies one write to an informer and enqueues the objects that depend on it.
func (p *process) sync(i *informer, now time.Time) {
	n := p.next(i)
	if n < 0 {
		return
	}
	p.seen[i.resource] = n + 1
	w := p.api.journal[n]
	_ = i.apply(w) // it has the kind of the informer
	about := w.after
	if about == nil {
		about = w.before
	}
	if !onlyLabelChanged(w.before, w.after) {
		p.wake(about, now)
	}
	before, _ := w.before.(*v1alpha1.ChangeWorkload)
	after, _ := w.after.(*v1alpha1.ChangeWorkload)
	if stopsBatches(before) || stopsBatches(after) {
		p.wakeBatches(about.GetName(), now)
	}
}

// onlyLabelChanged reports whether a write changed a pod but not its status. A changed
// label enqueues nothing.
func onlyLabelChanged(before, after object) bool {
	a, okA := before.(*corev1.Pod)
	b, okB := after.(*corev1.Pod)
	return okA && okB && equality.Semantic.DeepEqual(a.Status, b.Status)
}

// wake enqueues the same objects as the controllers do for a changed object.
func (p *process) wake(about object, now time.Time) {
	workloads := func(of func(*v1alpha1.ChangeWorkload) bool) {
		for _, o := range p.informer("changeworkloads").indexer.List() {
			if c := o.(*v1alpha1.ChangeWorkload); of(c) {
				p.enqueue("changeworkload", c, now)
			}
		}
	}
	switch about := about.(type) {
	case *v1alpha1.ChangePod:
		p.enqueue("changepod", about, now)
		workloads(func(c *v1alpha1.ChangeWorkload) bool { return metav1.IsControlledBy(about, c) })
	case *v1alpha1.ChangeWorkload:
		p.enqueue("changeworkload", about, now)
	case *appsv1.Deployment:
		workloads(func(c *v1alpha1.ChangeWorkload) bool { return c.Spec.WorkloadRef.UID == about.UID })
	case *appsv1.ReplicaSet:
		workloads(func(c *v1alpha1.ChangeWorkload) bool {
			return c.Name == v1alpha1.ChangeWorkloadName(deploymentName, about.Annotations[v1alpha1.VersionKey])
		})
	case *corev1.Pod:
		workloads(func(*v1alpha1.ChangeWorkload) bool { return true })
	}
}

func (p *process) wakeBatches(release string, now time.Time) {
	for _, o := range p.informer("changepods").indexer.List() {
		if c := o.(*v1alpha1.ChangePod); c.Spec.ChangeWorkloadID == release {
			p.enqueue("changepod", c, now)
		}
	}
}

// stopsBatches: the order was not accepted, its check failed, or the release was
// superseded.
func stopsBatches(c *v1alpha1.ChangeWorkload) bool {
	if c == nil {
		return false
	}
	cond := c.Status.GetCondition(v1alpha1.ReleaseOrderAccepted)
	outcome, _ := c.Status.OrderOutcome()
	return c.Status.Phase == v1alpha1.ReleaseFailed || outcome == v1alpha1.OutcomeFail || (cond.IsFalse() && cond.Reason == v1alpha1.ReasonOrderNotAccepted)
}

func (p *process) informer(resource string) *informer {
	for _, i := range p.informers {
		if i.resource == resource {
			return i
		}
	}
	panic("no informer of " + resource)
}

// ready returns the work that is due, in a deterministic order.
func (p *process) ready(now time.Time) []work {
	var out []work
	for w, at := range p.due {
		if !at.After(now) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b work) int { return strings.Compare(a.kind+a.key, b.kind+b.key) })
	return out
}

// nextDue returns the time at which the next work is due, or zero if there is none.
func (p *process) nextDue() time.Time {
	var out time.Time
	for _, at := range p.due {
		if out.IsZero() || at.Before(out) {
			out = at
		}
	}
	return out
}

// reconcile reconciles one key, and enqueues it again as a work queue does.
func (p *process) reconcile(ctx context.Context, w work, now func() time.Time) {
	delete(p.due, w)
	p.at = w
	err := p.reconcilers[w.kind].Reconciler.Reconcile(ctx, w.key)
	p.at = work{}
	again := func(after time.Duration) {
		at := now().Add(after)
		if old, ok := p.due[w]; !ok || at.Before(old) {
			p.due[w] = at
		}
	}
	if ok, after := controller.IsRequeueKey(err); ok {
		again(after)
		return
	}
	if err != nil && controller.IsPermanentError(err) {
		panic(fmt.Sprintf("permanent error of %v: %v", w, err))
	}
	if err != nil {
		again(time.Second)
	}
}

// Send implements the reconcilers' Sender: an event goes to the Broker, which can lose it.
func (w *fixture) Send(ctx context.Context, e cloudevents.Event) {
	w.broker.accept(signed(ctx, e), false)
}

// signed returns an event with a signature, as delivery.Sender sends it.
func signed(ctx context.Context, e cloudevents.Event) cloudevents.Event {
	if e.Extensions()[eventsigning.Extension] == nil {
		e = e.Clone()
		_ = eventKeys().Sign(ctx, &e) // never fails
	}
	return e
}

// SendAndConfirm implements the reconcilers' Sender: the Broker may be unreachable.
func (w *fixture) SendAndConfirm(ctx context.Context, e cloudevents.Event, accepted func()) {
	if w.draw("accept", 3) == 2 {
		return
	}
	w.broker.accept(signed(ctx, e), false)
	w.accepted[e.ID()] = true
	accepted()
}
