package changepod

import (
	"container/heap"
	"context"
	"fmt"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/test/race"
)

// flood is a model in virtual time: the batches of many releases exist at once, and
// function submit makes a limited number of calls per second. The server accepts
// every call and answers with a pass.
type flood struct {
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	client  *fake.Clientset
	owners  cache.Indexer // of ChangeWorkloads
	r       *Reconciler
	due     agenda
	reaches time.Duration // after which function submit is reachable
	// arrived are the wake-ups that wait for the rate limit of function submit.
	arrived []events.ChangePodReady
	waiting map[string]bool
	// startOrder are the releases in the order of the starts.
	startOrder []string
	// woken counts the wake-ups of the judges other than the server.
	woken map[string]int
	// retrieves: function submit retrieves a pass for a start whose callback was lost.
	retrieves bool
}

// agenda is a heap of functions by the time when they run.
type agenda []happening

type happening struct {
	at  time.Time
	run func()
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

const floodNamespace = "default"

// newFlood returns the model with batches of one pod.
func newFlood(t *testing.T, releases, batches int) *flood {
	owners := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	f := &flood{t: t, clock: clocktesting.NewFakePassiveClock(t0), client: fake.NewSimpleClientset(), owners: owners, waiting: map[string]bool{}}
	for i := range releases {
		owner := &v1alpha1.ChangeWorkload{ObjectMeta: metav1.ObjectMeta{
			Namespace: floodNamespace, Name: fmt.Sprintf("r%02d", i), UID: types.UID(fmt.Sprintf("r%02d", i)),
		}, Spec: v1alpha1.ChangeWorkloadSpec{Reversion: "0123456789abcdef0123456789abcdef", Attempt: 1}}
		if err := owners.Add(owner); err != nil {
			t.Fatal(err)
		}
		for n := range batches {
			c := batch()
			c.Namespace, c.Name = floodNamespace, fmt.Sprintf("%s--%d", owner.Name, n)
			c.UID, c.ResourceVersion, c.Spec.ChangeWorkloadID = types.UID(c.Name), "1", owner.Name
			if err := f.client.Tracker().Add(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.start()
	return f
}

// start starts a controller, which reconciles all batches. An earlier one ends.
func (f *flood) start() {
	f.r = &Reconciler{
		client: f.client, namespaces: namespaces(f.t, floodNamespace, true), changeWorkloads: listers.NewChangeWorkloadLister(f.owners), sender: f,
		interimWrites: rate.NewLimiter(rate.Every(interimWritePeriod), interimWriteBurst),
		unjudged:      metrics.NewCounter(metrics.Meter(), "breakwater_batches_unjudged_total"),
		settings:      settings.Default, serverConfigured: func() bool { return true },
		wakeups: resend.New(f.clock), judgeWakeUps: resend.NewWithin(f.clock, minLookInterval, maxLookInterval), clock: f.clock, calls: callqueue.New(f.clock),
		enqueue: func(k types.NamespacedName) { f.enqueue(k.Name, 0) },
	}
	all := f.list()
	for i := range all {
		f.enqueue(all[i].Name, 0)
	}
}

func (f *flood) after(d time.Duration, run func()) {
	heap.Push(&f.due, happening{f.clock.Now().Add(d), run})
}

func (f *flood) enqueue(name string, after time.Duration) {
	f.after(after, func() { f.reconcile(name) })
}

func (f *flood) get(name string) *v1alpha1.ChangePod {
	o, err := f.client.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("changepods"), floodNamespace, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return o.(*v1alpha1.ChangePod).DeepCopy()
}

// write stores facts, and reconciles the batch.
func (f *flood) write(c *v1alpha1.ChangePod) {
	if err := f.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("changepods"), c, floodNamespace); err != nil {
		f.t.Fatal(err)
	}
	f.enqueue(c.Name, 0)
}

func (f *flood) reconcile(name string) {
	ctx := controller.WithEventRecorder(logging.WithLogger(context.Background(), zap.NewNop().Sugar()), &record.FakeRecorder{})
	err := f.r.ReconcileKind(ctx, f.get(name))
	if again, after := controller.IsRequeueKey(err); again {
		f.enqueue(name, after)
	} else if err != nil {
		f.t.Fatal(err)
	}
}

// Send is the Broker and function submit: a wake-up waits for the rate limit.
func (f *flood) Send(_ context.Context, e cloudevents.Event) {
	d, err := events.ParseChangePodReady(e)
	if err != nil {
		f.t.Fatal(err)
	}
	if d.Judge != "" {
		if f.woken == nil {
			f.woken = map[string]int{}
		}
		f.woken[d.Judge]++
		return
	}
	if f.clock.Since(t0) >= f.reaches && !f.waiting[e.ID()] {
		f.waiting[e.ID()] = true
		f.arrived = append(f.arrived, d)
	}
}

// call makes the call of the wake-up that has waited longest.
func (f *flood) call() {
	if len(f.arrived) == 0 {
		return
	}
	d := f.arrived[0]
	f.arrived = f.arrived[1:]
	delete(f.waiting, d.ID())
	c := f.get(d.Name)
	if c.Status.Phase == v1alpha1.BatchExecuteDone {
		return
	}
	if c.Status.SubmissionOf(d.Stage) != nil {
		if f.retrieves && c.Status.VerdictOf(d.Stage) == nil {
			f.pass(c, d.Stage)
		}
		return
	}
	now := metav1.NewMicroTime(f.clock.Now())
	c.Status.Submissions = append(c.Status.Submissions, v1alpha1.Submission{Stage: d.Stage, IntentTime: now, AnsweredTime: &now, Attempts: 1})
	if d.Stage == v1alpha1.StagePre {
		f.startOrder = append(f.startOrder, c.Spec.ChangeWorkloadID)
	}
	f.write(c)
	f.after(time.Second, func() { f.pass(f.get(d.Name), d.Stage) })
}

// pass stores a pass of a stage.
func (f *flood) pass(c *v1alpha1.ChangePod, stage v1alpha1.Stage) {
	c.Status.Verdicts = append(c.Status.Verdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: "pass", Time: metav1.NewMicroTime(f.clock.Now())})
	f.write(c)
}

// run runs until nothing is due, at most for the duration.
func (f *flood) run(callsPerSecond int, limit time.Duration) {
	end := t0.Add(limit)
	var tick func()
	tick = func() {
		f.call()
		f.after(time.Second/time.Duration(callsPerSecond), tick)
	}
	f.after(0, tick)
	defer func() { tick = func() {} }()
	for f.due.Len() > 0 && f.due[0].at.Before(end) {
		next := heap.Pop(&f.due).(happening)
		f.clock.SetTime(next.at)
		next.run()
	}
}

func (f *flood) list() []v1alpha1.ChangePod {
	all, err := f.client.AppV1alpha1().ChangePods(floodNamespace).List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return all.Items
}

// count counts the batches by the reason of condition Judged.
func (f *flood) count() map[string]int {
	all := f.list()
	out := map[string]int{}
	for i := range all {
		if cond := all[i].Status.GetCondition(v1alpha1.BatchJudged); cond != nil {
			out[cond.Reason]++
		} else {
			out[""]++
		}
	}
	return out
}

// 20 Deployments of 20 pods need 800 calls. At 4 per second that takes longer than
// pre-timeout and post-timeout, which are 120 s.
func TestNoBatchOfManyReleasesIsUnjudged(t *testing.T) {
	f := newFlood(t, 20, 20)
	f.run(4, 15*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonVerdictReceived] != 400 {
		t.Errorf("batches by reason: %v, want 400 that are judged", got)
	}
	for name, n := range f.startsUntil(200) {
		if n > 30 {
			t.Errorf("%d of the first 200 starts are of %s: the queue is not fair", n, name)
		}
	}
}

func TestNoBatchIsUnjudgedBecauseTheBrokerWasUnreachable(t *testing.T) {
	for name, tc := range map[string]struct{ releases, batches, callsPerSecond int }{
		"few batches": {5, 10, 20},
		// A batch whose wake-up was lost waits for another turn, longer than submit-timeout.
		"many batches": {20 / race.Slowdown, 20, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlood(t, tc.releases, tc.batches)
			f.reaches = 8 * time.Minute
			f.run(tc.callsPerSecond, 30*time.Minute)
			if got, want := f.count(), tc.releases*tc.batches; got[v1alpha1.ReasonVerdictReceived] != want {
				t.Errorf("batches by reason: %v, want %d that are judged", got, want)
			}
		})
	}
}

func TestBatchesEndUnjudgedWhenTheBrokerStaysUnreachable(t *testing.T) {
	f := newFlood(t, 5, 30)
	f.reaches = time.Hour
	f.run(20, 10*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonNotSubmitted] != 0 {
		t.Errorf("batches by reason after less than submit-timeout: %v", got)
	}
	f.run(20, 20*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonNotSubmitted] != 150 {
		t.Errorf("batches by reason: %v, want 150 without a call", got)
	}
}

// When a batch was woken is in memory only. A restart thus ends no batch too early; a batch whose
// controller restarts more often than submit-timeout is pending until its call is made.
func TestARestartBeginsSubmitTimeoutAgain(t *testing.T) {
	f := newFlood(t, 1, 20)
	f.reaches = time.Hour
	for _, at := range []time.Duration{9 * time.Minute, 18 * time.Minute, 27 * time.Minute} {
		f.run(20, at)
		f.start()
	}
	f.run(20, 36*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonNotSubmitted] != 0 {
		t.Errorf("batches by reason less than submit-timeout after the last restart: %v", got)
	}
	f.run(20, 38*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonNotSubmitted] != 20 {
		t.Errorf("batches by reason: %v, want 20 without a call", got)
	}
}

func TestABatchOfAControllerThatKeepsRestartingIsJudgedWhenItsCallCanBeMade(t *testing.T) {
	f := newFlood(t, 1, 20)
	f.reaches = time.Hour
	for at := 5 * time.Minute; at < 2*time.Hour; at += 5 * time.Minute {
		f.run(20, at)
		f.start()
	}
	if got := f.count(); got[v1alpha1.ReasonVerdictReceived] != 20 {
		t.Errorf("batches by reason: %v, want 20 that are judged", got)
	}
}

// startsUntil counts the first n starts by release.
func (f *flood) startsUntil(n int) map[string]int {
	out := map[string]int{}
	for _, release := range f.startOrder[:min(n, len(f.startOrder))] {
		out[release]++
	}
	return out
}
