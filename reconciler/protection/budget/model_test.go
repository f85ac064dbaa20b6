package budget

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"knative.dev/pkg/logging"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "200", "rapid.steps": "100", "rapid.nofailfile": "true"} {
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
	// guarded is the revision at which the budgets were in effect. No cache begins
	// before it: a replica that does not know a budget allows everything, and the
	// condition Guarding says so.
	guarded int64
}

func newBudgetModel(t *rapid.T) *budgetModel {
	ctx, cancel := context.WithCancel(logging.WithLogger(context.Background(), zap.NewNop().Sugar()))
	m := &budgetModel{t: t, ctx: ctx, cancel: cancel, api: newModelAPI(), deleted: map[types.UID]bool{}}
	replicas := rapid.Int32Range(2, 4).Draw(t, "replicas")
	m.workload = newModelWorkload(m.api, replicas, rapid.Bool().Draw(t, "reuses names"))
	for i := range rapid.IntRange(1, 2).Draw(t, "budgets") {
		limit := intstr.FromInt32(rapid.SampledFrom([]int32{1, 1, 1, 0, 2}).Draw(t, "maxUnavailable"))
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

// actions are what may happen.
func (m *budgetModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"request a deletion":       m.request,
		"serve a call":             m.serveOne,
		"serve all calls":          func(*rapid.T) { m.serveAll() },
		"break a call":             m.breakCall,
		"answer":                   m.answer,
		"lose an answer":           m.loseAnswer,
		"carry out":                m.carryOutOne,
		"deny for another reason":  m.abandon,
		"wait":                     m.wait,
		"deliver events":           m.deliver,
		"deliver all events":       func(*rapid.T) { m.deliverAll() },
		"reconcile":                func(*rapid.T) { m.admitter.Reconcile(true); m.settle() },
		"delete at once":           m.deleteAtOnce,
		"compute the budgets":      func(*rapid.T) { m.compute() },
		"change readiness":         m.changeReadiness,
		"progress of the workload": m.progress,
		"restart":                  m.restart,
		"":                         func(*rapid.T) { m.observe() },
	}
}

// pick draws one of the elements, or skips the action if there is none.
func pick[E any](t *rapid.T, label string, all []E) E {
	if len(all) == 0 {
		t.SkipNow()
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, label)]
}

func (m *budgetModel) inState(ok func(*deletion) bool) (found []*deletion) {
	for _, r := range m.requests {
		if ok(r) {
			found = append(found, r)
		}
	}
	return found
}

func (m *budgetModel) request(t *rapid.T) {
	if len(m.inState(isOpen)) >= 4 {
		t.SkipNow()
	}
	p := m.pod(t)
	kind := rapid.SampledFrom([]string{"delete", "delete", "force", "evict", "dry run", "evict, dry run", "evict, dry run in the body"}).Draw(t, "kind")
	r := &deletion{replica: rapid.IntRange(0, webhookReplicas-1).Draw(t, "replica")}
	r.force = kind == "force"
	r.evict = kind == "evict" || kind == "evict, dry run" || kind == "evict, dry run in the body"
	r.dryRun = kind == "dry run" || kind == "evict, dry run" || kind == "evict, dry run in the body"
	r.dryRunInBody = kind == "evict, dry run in the body"
	if !r.evict && rapid.Bool().Draw(t, "old state") {
		p = m.oldState(p)
	}
	m.add(r, p)
	t.Logf("%s at replica %d, resourceVersion %s", r, r.replica, p.ResourceVersion)
	m.settle()
}

// pod draws a pod. Several requests about one pod are likely.
func (m *budgetModel) pod(t *rapid.T) *corev1.Pod {
	pods := m.workload.pods()
	wanted := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || !m.isWanted(p.UID) })
	if len(wanted) > 0 && rapid.Bool().Draw(t, "same pod") {
		pods = wanted
	}
	return pick(t, "pod", pods)
}

// isWanted reports whether a request about the pod is open, or has left a charge.
func (m *budgetModel) isWanted(uid types.UID) bool {
	for _, b := range m.api.budgets {
		if m.admitter.Charged(b.Name).Has(uid) {
			return true
		}
	}
	return m.mayBeDeleted(uid, nil)
}

func isOpen(r *deletion) bool { return r.state != stateEnded }

// add asks the webhook about a new request.
func (m *budgetModel) add(r *deletion, p *corev1.Pod) {
	m.asked++
	r.id, r.started = m.asked, time.Now()
	m.requests = append(m.inState(isOpen), r)
	m.ask(r, p)
}

// deleteAtOnce admits a deletion, and mostly carries it out, while all other calls and
// requests wait.
func (m *budgetModel) deleteAtOnce(t *rapid.T) {
	p := m.pod(t)
	r := &deletion{replica: rapid.IntRange(0, webhookReplicas-1).Draw(t, "replica"), evict: rapid.Bool().Draw(t, "evict")}
	before, wholly := m.api.waiting(), rapid.Bool().Draw(t, "carry out")
	m.add(r, p)
	t.Logf("%s at replica %d at once, carried out: %v", r, r.replica, wholly)
	for range 3 {
		m.settle()
		m.serveNew(before)
		if len(r.answer) == 0 {
			m.sleep(30 * time.Millisecond)
		}
	}
	for r.state == stateAsking && len(r.answer) > 0 {
		m.receive(r)
		if r.state == stateAllowed && wholly {
			m.carryOut(r)
		}
		m.settle()
	}
}

// compute computes the budgets from the present pods while all other calls wait.
func (m *budgetModel) compute() {
	before := m.api.waiting()
	m.admitter.Deliver(controllerProcess, 1<<30, 1<<30)
	m.sleep(minInterval)
	m.admitter.Reconcile(true)
	m.settle()
	m.serveNew(before)
}

// serveNew serves calls other than those.
func (m *budgetModel) serveNew(old []*apiCall) {
	for range 100 {
		calls := slices.DeleteFunc(m.api.waiting(), func(c *apiCall) bool { return slices.Contains(old, c) })
		if len(calls) == 0 {
			return
		}
		m.serve(calls[0], fateServed)
	}
}

// oldState returns the state of the pod before its last change. The watch cache of
// the API server may have it.
func (m *budgetModel) oldState(p *corev1.Pod) *corev1.Pod {
	old := p
	for _, e := range m.api.podEvents {
		if e.object == p {
			break
		}
		if e.object.UID == p.UID {
			old = e.object
		}
	}
	return old
}

// settle waits until all goroutines wait.
func (m *budgetModel) settle() { synctest.Wait() }

func (m *budgetModel) serve(c *apiCall, f fate) {
	m.t.Logf("%s: %s", c.what, f)
	m.api.end(c, f)
	m.settle()
	m.observe()
}

func (m *budgetModel) serveOne(t *rapid.T) { m.serve(pick(t, "call", m.api.waiting()), fateServed) }

// serveAll serves calls until none waits. In between it waits for as long as a group
// of requests lingers.
func (m *budgetModel) serveAll() {
	for range 3 {
		for range 100 {
			calls := m.api.waiting()
			if len(calls) == 0 {
				break
			}
			m.serve(calls[0], fateServed)
		}
		m.sleep(30 * time.Millisecond)
	}
}

func (m *budgetModel) breakCall(t *rapid.T) {
	c := pick(t, "call", m.api.waiting())
	m.serve(c, rapid.SampledFrom([]fate{fateFailed, fateLost}).Draw(t, "fate"))
}

func (m *budgetModel) answer(t *rapid.T) {
	r := pick(t, "request", m.inState(func(r *deletion) bool { return r.state == stateAsking && len(r.answer) > 0 }))
	m.t.Logf("%s: answered", r)
	m.receive(r)
	m.settle()
}

func (m *budgetModel) loseAnswer(t *rapid.T) {
	r := pick(t, "request", m.inState(func(r *deletion) bool { return r.state == stateAsking }))
	m.t.Logf("%s: the answer is lost", r)
	r.end()
	m.settle()
}

func (m *budgetModel) carryOutOne(t *rapid.T) {
	r := pick(t, "request", m.inState(func(r *deletion) bool { return r.state == stateAllowed }))
	m.t.Logf("%s: carried out", r)
	m.carryOut(r)
	m.settle()
}

func (m *budgetModel) abandon(t *rapid.T) {
	r := pick(t, "request", m.inState(func(r *deletion) bool { return r.state == stateAllowed }))
	m.t.Logf("%s: denied for another reason", r)
	r.end()
}

// sleep lets time pass, and ends the requests that have taken too long.
func (m *budgetModel) sleep(d time.Duration) {
	time.Sleep(d)
	m.settle()
	now := time.Now()
	for _, r := range m.requests {
		if r.state == stateAsking && now.Sub(r.asked) >= webhookTimeout || r.state != stateEnded && now.Sub(r.started) >= requestTimeout {
			m.t.Logf("%s: timed out", r)
			r.end()
		}
	}
	m.settle()
}

// waits are near the time-outs of the product. Long ones are rare, because they end
// all requests.
var waits = []time.Duration{
	30 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond,
	600 * time.Millisecond, 600 * time.Millisecond, 600 * time.Millisecond, 3 * time.Second, 3 * time.Second,
	requestTimeout / 2, requestTimeout - time.Second, requestTimeout + time.Second,
}

func (m *budgetModel) wait(t *rapid.T) {
	d, works := rapid.SampledFrom(waits).Draw(t, "for"), rapid.Bool().Draw(t, "the controller works")
	if works {
		m.compute()
	}
	m.sleep(d)
	if works {
		m.compute()
	}
}

func (m *budgetModel) deliver(t *rapid.T) {
	process := rapid.IntRange(0, processes-1).Draw(t, "process")
	m.admitter.Deliver(process, rapid.IntRange(0, 3).Draw(t, "pods"), rapid.IntRange(0, 3).Draw(t, "budgets"))
}

func (m *budgetModel) deliverAll() {
	for i := range processes {
		m.admitter.Deliver(i, 1<<30, 1<<30)
	}
}

// changeReadiness lets a pod crash or become Ready.
func (m *budgetModel) changeReadiness(t *rapid.T) {
	p := pick(t, "pod", m.workload.pods())
	m.t.Logf("pod %s (%s) becomes Ready: %v", p.Name, p.UID, !ready(p))
	m.workload.setReady(p, !ready(p))
}

// progress ends a terminating pod, or creates a replacement.
func (m *budgetModel) progress(t *rapid.T) {
	terminating := slices.DeleteFunc(m.workload.pods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	if len(terminating) > 0 && rapid.Bool().Draw(t, "end") {
		m.api.removePod(pick(t, "pod", terminating).Name)
		return
	}
	if !m.workload.replace() {
		t.SkipNow()
	}
}

func (m *budgetModel) restart(t *rapid.T) {
	which := rapid.SampledFrom([][]int{{0}, {1}, {0, 1}, {controllerProcess}}).Draw(t, "processes")
	behind := rapid.Int64Range(0, 10).Draw(t, "behind")
	for _, process := range which {
		for _, r := range m.requests {
			if process == r.replica && r.state == stateAsking && len(r.answer) == 0 {
				r.end()
			}
		}
		m.admitter.Restart(process, max(m.api.revision-behind, m.guarded))
	}
	m.settle()
}

func (m *budgetModel) desired(b *v1alpha1.PodUnavailableBudget) int32 {
	if b.Spec.MinAvailable != nil {
		return b.Spec.MinAvailable.IntVal
	}
	return max(*m.workload.set.Spec.Replicas-b.Spec.MaxUnavailable.IntVal, 0)
}

// knownAvailable returns how many pods are available without a pod and without all
// available ones whose deletion is admitted, by the state that a budget's decisions
// are based on.
func (m *budgetModel) knownAvailable(name string, uid types.UID) (n int32) {
	for _, p := range m.api.podsAt(m.admitter.Known(name)) {
		admitted := m.deleted[p.UID] || p.UID == uid
		for _, r := range m.requests {
			admitted = admitted || r.state == stateAllowed && !r.dryRun && r.pod.UID == p.UID && budget.Available(r.pod) && !r.wasUnavailable
		}
		if budget.Available(p) && !admitted {
			n++
		}
	}
	return n
}

// observe checks the invariants.
func (m *budgetModel) observe() {
	replicas := *m.workload.set.Spec.Replicas
	for _, b := range m.api.budgets {
		if available := replicas - m.workload.disrupted; available < m.desired(b) {
			m.fail("budget %s: deletions have made %d of %d pods unavailable, %d have to be available", b.Name, m.workload.disrupted, replicas, m.desired(b))
		}
	}
	for _, r := range m.requests {
		if r.state == stateEnded {
			continue
		}
		p, exists := m.api.pods[r.pod.Name]
		if !exists || p.UID != r.pod.UID || !budget.Available(p) {
			r.certain, r.wasUnavailable = false, true
		}
		for _, b := range m.api.budgets {
			if r.certain && r.state == stateAsking && !r.fitted[b.Name] {
				r.fitted[b.Name] = m.knownAvailable(b.Name, r.pod.UID) >= m.desired(b)
			}
		}
	}
}

// runFor lets everything proceed without faults.
func (m *budgetModel) runFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		m.runOnce()
		m.sleep(time.Second - 90*time.Millisecond)
	}
}

func (m *budgetModel) runOnce() {
	m.deliverAll()
	m.admitter.Reconcile(false)
	m.settle()
	m.serveAll()
	for _, r := range m.requests {
		if r.state == stateAsking && len(r.answer) > 0 {
			m.receive(r)
		}
		if r.state == stateAllowed {
			m.carryOut(r)
		}
	}
	m.settle()
}

// quiet ends all faults. After all time-outs nothing may be charged, and as many pods
// may be deleted as the budgets say.
func (m *budgetModel) quiet() {
	m.t.Logf("quiet")
	for range 4 {
		m.runFor(3 * time.Second)
		for _, p := range m.workload.pods() {
			if p.DeletionTimestamp != nil {
				m.api.removePod(p.Name)
			}
		}
		for m.workload.replace() {
		}
		for _, p := range m.workload.pods() {
			if !ready(p) {
				m.workload.setReady(p, true)
			}
		}
	}
	m.runFor(requestTimeout + chargeTimeout)
	for _, r := range m.requests {
		if r.state != stateEnded {
			m.fail("%s has not ended", r)
		}
	}
	room := *m.workload.set.Spec.Replicas
	for _, b := range m.api.budgets {
		if left := m.admitter.Charged(b.Name); len(left) > 0 {
			m.fail("budget %s: %v are charged after all requests have ended", b.Name, left)
		}
		room = min(room, *m.workload.set.Spec.Replicas-m.desired(b))
	}
	m.deleteUntilDenied(room)
}

// deleteUntilDenied checks that exactly as many deletions are allowed as the budgets
// have room, after a dry run.
func (m *budgetModel) deleteUntilDenied(room int32) {
	pods := m.workload.pods()
	try := func(p *corev1.Pod, evict, dryRun bool) bool {
		r := &deletion{replica: m.asked % webhookReplicas, evict: evict, dryRun: dryRun, dryRunInBody: evict}
		m.add(r, p)
		m.settle()
		m.serveAll()
		if len(r.answer) == 0 {
			m.fail("%s: no answer", r)
		}
		m.t.Logf("%s: answered", r)
		m.receive(r)
		if r.state == stateAllowed {
			m.carryOut(r)
		}
		m.settle()
		m.observe()
		return r.allowed
	}
	for _, evict := range []bool{false, true} {
		if got := try(pods[len(pods)-1], evict, true); got != (room > 0) {
			m.fail("with room for %d deletions a dry run (eviction: %v) was allowed: %v", room, evict, got)
		}
	}
	for i, p := range pods {
		if got := try(p, i%2 == 1, false); got != (int32(i) < room) {
			m.fail("with room for %d deletions number %d was allowed: %v", room, i+1, got)
		}
	}
}
