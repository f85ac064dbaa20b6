package property

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// leaseDuration is the time after which another process becomes leader, as in
// config-leader-election.
const leaseDuration = 20 * time.Second

// The leader is paused between a decision and its write. Another process becomes leader and
// works, releases and verdicts arrive, and then the paused process goes on: it makes the
// write, and further ones from its old caches.
func TestALeaderThatIsPausedLongerThanItsLeaseWritesNothingWrong(t *testing.T) {
	resumed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newFixture(t)
		w.pauses = true
		defer func() { resumed += w.resumed }()
		w.run(t)
	})
	if resumed == 0 {
		t.Error("no leader was paused")
	}
	t.Logf("%d pauses", resumed)
}

// maybePause is a point at which the leader can be paused, before one of its writes. Writes of
// the workload are rare, so it is paused before each of them.
func (w *fixture) maybePause(by string, of id) {
	if !w.pauses || w.quiet || by != controllerName || w.depth != 1 || w.leader != nil || (of != deploymentID && w.draw("pause", 4) != 3) {
		return
	}
	w.endFormerLeader()
	paused, running := w.process, w.busy[controllerName]
	w.process, w.busy[controllerName] = start(w), 0
	w.clock.SetTime(w.clock.Now().Add(leaseDuration))
	for range w.draw("meanwhile", 60) {
		steps := []func() bool{w.kubernetesStep, w.syncOne, w.reconcileSome, w.deliverSome, w.deliverSomeCallback, w.personJudges, w.meanwhileRelease}
		steps[w.draw("step", len(steps))]()
	}
	w.process, w.leader, w.busy[controllerName] = paused, w.process, running
	w.resumed++
}

// meanwhileRelease applies another template.
func (w *fixture) meanwhileRelease() bool {
	return w.release([]string{"v1", "v2", "v0"}[w.draw("template", 3)], w.draw("repair", 2) == 1)
}

// returnToLeader ends a turn of a former leader.
func (w *fixture) returnToLeader() {
	if w.leader != nil {
		w.process, w.former, w.leader = w.leader, w.process, nil
	}
}

// formerLeader gives a turn to a former leader, or ends it: it notices that it is none.
func (w *fixture) formerLeader() bool {
	if w.former == nil || w.busy[controllerName] > 0 {
		return false
	}
	if w.draw("notices", 4) == 3 {
		w.endFormerLeader()
		return true
	}
	w.process, w.leader, w.former = w.former, w.process, nil
	turn := []func() bool{w.syncOne, w.reconcileSome}[w.draw("turn", 2)]
	done := turn()
	w.returnToLeader()
	return done
}

func (w *fixture) endFormerLeader() {
	if w.former != nil {
		w.former.stop()
		w.former = nil
	}
}
