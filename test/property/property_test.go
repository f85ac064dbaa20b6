package property

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/test/race"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(30 / race.Slowdown), "rapid.nofailfile": "true"} {
		if !given[name] {
			_ = flag.Set(name, value) // rapid defines these flags
		}
	}
	utilruntime.PanicHandlers = nil // crashes are intended, and their stacks are long
	_ = os.Setenv("SYSTEM_NAMESPACE", v1alpha1.SystemNamespace)
	os.Exit(m.Run())
}

func TestEveryHistoryEndsAsItsVerdictsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newFixture(t).run(t) })
}

// run takes random steps, ends the faults, and checks the invariants.
func (w *fixture) run(t *rapid.T) {
	defer w.close()
	// A step is a seed; 0 is no step. So a step can be removed from a history
	// without changing the others.
	for i, seed := range rapid.SliceOfN(rapid.Uint64(), 150, 250).Draw(t, "steps") {
		if seed != 0 {
			w.step(seed, uint64(i))
			w.check(t)
		}
	}
	w.drain()
	w.checkEnd()
	w.check(t)
}

// step does one random action.
func (w *fixture) step(seed, at uint64) {
	w.random = rand.New(rand.NewPCG(seed, at))
	actions := w.actions()
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	chosen := w.random.IntN(total)
	for _, a := range actions {
		if chosen -= a.weight; chosen < 0 {
			w.draws = nil
			if a.do() {
				w.trace = append(w.trace, fmt.Sprintf("%s %v", a.name, w.draws))
			}
			return
		}
	}
}

// check fails the test with the violations.
func (w *fixture) check(t *rapid.T) {
	w.checkClaims()
	if len(w.violations) > 0 {
		t.Fatalf("policy %s, %s if contradicted, %d per cent:\n%s\n\nhistory:\n%s", w.policy, w.contradicted, w.percent,
			strings.Join(w.violations, "\n"), strings.Join(w.trace, "\n"))
	}
}

// action is a possible action; do returns false if it is not possible now.
type action struct {
	name   string
	weight int
	do     func() bool
}

func (w *fixture) actions() []action {
	repeated := func(f func() bool, most int) func() bool {
		return func() bool {
			some := false
			for range 1 + w.draw("times", most) {
				some = f() || some
			}
			return some
		}
	}
	move := func(durations ...time.Duration) func() bool {
		return func() bool {
			w.clock.SetTime(w.clock.Now().Add(durations[w.draw("duration", len(durations))]))
			return true
		}
	}
	person := 1
	if w.pauses {
		person = 10 // their verdicts make the controller write the workload, which is rare
	}
	return []action{
		{"kubernetes", 22, repeated(w.kubernetesStep, 8)},
		{"see", 20, repeated(w.syncOne, 16)},
		{"reconcile", 20, repeated(w.reconcileSome, 4)},
		{"deliver", 18, repeated(w.deliverSome, 4)},
		{"call back", 12, repeated(w.deliverSomeCallback, 3)},
		{"time", 8, move(100*time.Millisecond, time.Second, 3*time.Second, 10*time.Second, 30*time.Second, 70*time.Second, 140*time.Second)},
		// The controller measures the times in its memory with the monotonic clock, which the clock of this test does
		// not have, so it restarts.
		{"clock step", 1, func() bool {
			move(-time.Second, -time.Minute, -10*time.Minute, 10*time.Minute)()
			w.endFormerLeader()
			w.restart()
			return true
		}},
		{"store answers", 2, w.storeAnswers},
		{"release", 2, func() bool {
			return w.release([]string{"v1", "v2", "v0"}[w.draw("template", 3)], w.draw("repair", 2) == 1)
		}},
		{"person", person, w.personJudges},
		{"delete a pod", 2, w.deletePod},
		{"scale", 2, w.scale},
		{"crash soon", 3, func() bool { w.crashIn = 1 + w.draw("in", 6); return true }},
		{"restart", 1, func() bool { w.restart(); return true }},
		{"former leader", 6, w.formerLeader},
		{"judge", 1, func() bool { w.server.down = !w.server.down; w.wasDown = true; return true }},
	}
}

func (w *fixture) deletePod() bool {
	list := all[*corev1.Pod](w.api, "pods")
	if len(list) == 0 {
		return false
	}
	w.api.store(kubernetes, id{"pods", namespace, list[w.draw("pod", len(list))].Name}, nil)
	return true
}

func (w *fixture) scale() bool {
	to := int32(1 + w.draw("replicas", 3))
	change(w.api, kubernetes, deploymentID, func(d *appsv1.Deployment) { d.Spec.Replicas = &to })
	return true
}

// drain ends the faults and runs until nothing is due. A person passes batches and
// orders that wait for a person.
func (w *fixture) drain() {
	w.quiet, w.crashIn, w.server.down = true, 0, false
	w.endFormerLeader()
	began := w.clock.Now()
	w.quietSince = began
	for steps := 0; ; steps++ {
		if w.kubernetesStep() || w.syncOne() || w.deliverSome() || w.deliverSomeCallback() || w.reconcileSome() {
			if steps > 20000 {
				w.violated("work remains after 20000 steps")
				return
			}
			continue
		}
		if w.personPasses() {
			continue
		}
		next := w.process.nextDue()
		if next.IsZero() || w.clock.Since(began) > 3*time.Hour {
			return
		}
		w.clock.SetTime(next)
	}
}

// policyOf returns the outcome of a batch if it is unjudged.
func (w *fixture) policyOf(p *v1alpha1.ChangePod) v1alpha1.NoVerdictPolicy {
	return settings.Settings{NoVerdict: w.policy, NoVerdictContradicted: w.contradicted}.RuleOfBatch(p).Policy
}

// personPasses passes a batch or an order that waits for a person.
func (w *fixture) personPasses() bool {
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		order := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
		if order.IsFalse() && order.Reason == v1alpha1.ReasonHeldUnjudged && c.Status.OrderResult == nil {
			w.judgeOrderByHand(c, "pass")
			return true
		}
		for _, p := range w.batchesOf(c) {
			for _, info := range p.Spec.PodInfos {
				o, _ := p.OutcomeOf(info.Pod)
				if w.policyOf(p) == v1alpha1.NoVerdictHold && o == v1alpha1.OutcomeNoVerdict && c.Status.Phase != v1alpha1.ReleaseSuccess && c.Status.Phase != v1alpha1.ReleaseFailed {
					w.judgeByHand(p, "pass")
					return true
				}
			}
		}
	}
	return false
}
