package budget

import (
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// actions are the steps of the model.
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
		"interrupt a request":      m.interrupt,
		"repeat a request":         m.repeat,
		"crash during a deletion":  m.crashDuringDeletion,
		"delete a new pod":         m.deleteNewPod,
		"elect a leader":           m.electLeader,
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
