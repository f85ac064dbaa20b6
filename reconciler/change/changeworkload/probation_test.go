package changeworkload

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// judgedByMetrics adds a batch of one pod that judge metrics passed, with a probation.
func judgedByMetrics(n int, probation time.Duration) func(*Input) {
	return func(in *Input) {
		judged(n, "")(in)
		c := in.ChangePods[len(in.ChangePods)-1]
		c.Namespace, c.UID = "default", "batch"
		c.Spec.Judges = []v1alpha1.Judge{{Name: v1alpha1.JudgeMetrics, ProbationSeconds: int32(probation / time.Second)}}
		c.Status.Phase, c.Status.Message = v1alpha1.BatchExecuteDone, string(v1alpha1.BatchPostFinish)
		c.Status.Judges = []v1alpha1.JudgeVerdict{{Judge: v1alpha1.JudgeMetrics, Stage: v1alpha1.StagePost, Verdict: "pass"}}
	}
}

// succeededAtT0: the release succeeded at t0.
func succeededAtT0(in *Input) {
	was(v1alpha1.ReleaseSuccess)(in)
	in.ChangeWorkload.Status.EntryTimeUnix = t0.Unix()
}

// seen adds the record of the looks of function judge to the first batch.
func seen(looks int32, at time.Duration, verdict judgev1alpha1.Verdict, final bool) func(*Input) {
	return func(in *Input) {
		in.ChangePods[0].Status.Probation = &judgev1alpha1.Record{
			Verdict: verdict, Reason: "R", Message: "m", Looks: looks, LookTime: metav1.NewTime(t0.Add(at)), Final: final,
		}
	}
}

// lateFail adds the fail that function verdict stored.
func lateFail(in *Input) { in.ChangePods[0].Status.Judges[0].Verdict = "fail" }

// until is a probation that was stored before, which ends after some time.
func until(end time.Duration, looks int32, next time.Duration) func(*Input) {
	return func(in *Input) {
		p := &v1alpha1.Probation{EndTime: metav1.NewTime(t0.Add(end)), Looks: looks}
		if next > 0 {
			at := metav1.NewTime(t0.Add(next))
			p.NextLookTime = &at
		}
		in.ChangeWorkload.Status.Probation = p
	}
}

// withoutPods: the release succeeded at 0 replicas, before a pod had passed.
func withoutPods(in *Input) {
	in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
		Type: v1alpha1.ReleaseJudged, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNoVerdict})
}

func TestTheProbationFollowsFromTheSuccessAndTheLooks(t *testing.T) {
	const long, none, pass, fail = 6 * time.Hour, judgev1alpha1.VerdictNone, judgev1alpha1.VerdictPass, judgev1alpha1.VerdictFail
	type want struct {
		end, next time.Duration // since t0; 0 for none
		looks     int32
		wake      bool
	}
	passed := func(probation time.Duration, options ...func(*Input)) Input {
		return release(1, append([]func(*Input){finished(1, 1), complete1, judgedByMetrics(1, probation), succeededAtT0}, options...)...)
	}
	for name, tc := range map[string]struct {
		in   Input
		want want
	}{
		"no probation":                       {passed(0), want{}},
		"the release runs":                   {passed(long, was(v1alpha1.ReleaseRunning)), want{}},
		"it succeeded without pods":          {passed(long, withoutPods), want{}},
		"it has just succeeded":              {passed(long), want{long, 10 * time.Minute, 0, false}},
		"the first look is due":              {passed(long, until(long, 0, 10*time.Minute), after(10*time.Minute)), want{long, 10 * time.Minute, 0, true}},
		"due, but not stored yet":            {passed(long, after(10*time.Minute)), want{long, 10 * time.Minute, 0, false}},
		"the first look was made":            {passed(long, until(long, 0, 10*time.Minute), after(11*time.Minute), seen(1, 10*time.Minute, pass, false)), want{long, 30 * time.Minute, 1, false}},
		"the distance doubles":               {passed(long, until(long, 1, 30*time.Minute), after(31*time.Minute), seen(2, 30*time.Minute, none, false)), want{long, 70 * time.Minute, 2, false}},
		"the distance is at most an hour":    {passed(long, until(long, 2, 70*time.Minute), seen(3, 70*time.Minute, pass, false)), want{long, 130 * time.Minute, 3, false}},
		"a look that came late":              {passed(long, until(long, 3, 130*time.Minute), after(5*time.Hour), seen(4, 290*time.Minute, pass, false)), want{long, 350 * time.Minute, 4, false}},
		"the last look is at the end":        {passed(long, until(long, 4, 350*time.Minute), seen(5, 350*time.Minute, pass, false)), want{long, long, 5, false}},
		"a short probation has one look":     {passed(time.Minute), want{time.Minute, time.Minute, 0, false}},
		"it has ended":                       {passed(long, until(long, 6, long), seen(7, long, pass, true)), want{long, 0, 7, false}},
		"too little data at its end":         {passed(long, until(long, 6, long), seen(7, long, none, true)), want{long, 0, 7, false}},
		"a fail that is not stored yet":      {passed(long, until(long, 0, 10*time.Minute), seen(1, 10*time.Minute, fail, true)), want{long, 0, 1, true}},
		"a late fail":                        {passed(long, until(long, 0, 10*time.Minute), seen(1, 10*time.Minute, fail, true), lateFail), want{long, 0, 1, false}},
		"a person failed a pod":              {passed(long, until(long, 0, 10*time.Minute), person("fail"), after(10*time.Minute)), want{long, 0, 0, false}},
		"a person passed the batch":          {passed(long, until(long, 0, 10*time.Minute), person("pass"), after(10*time.Minute)), want{long, 0, 0, false}},
		"a person passed it before":          {passed(long, person("pass")), want{}},
		"a newer release ends it":            {passed(long, until(long, 1, 30*time.Minute), newer, seen(1, 10*time.Minute, pass, false), after(time.Hour)), want{long, 0, 1, false}},
		"a newer release, and no probation":  {passed(0, newer), want{}},
		"the cache of workloads is stale":    {passed(long, until(long, 1, 30*time.Minute), behind, seen(1, 10*time.Minute, pass, false)), want{long, 30 * time.Minute, 1, false}},
		"a restart of the controller":        {passed(long, until(long, 1, 30*time.Minute), seen(1, 10*time.Minute, pass, false), after(20*time.Minute), decidingSince(20*time.Minute)), want{long, 30 * time.Minute, 1, false}},
		"the batch was deleted":              {passed(long, until(long, 1, 30*time.Minute), func(in *Input) { in.ChangePods = nil }, after(time.Hour)), want{long, 0, 1, false}},
		"the batch has another judge":        {passed(long, func(in *Input) { in.ChangePods[0].Spec.Judges[0].Name = "canary" }), want{}},
		"only the first batch has the looks": {passed(long, judgedByMetrics(2, time.Hour), finished(2, 2)), want{long, 10 * time.Minute, 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			got := want{wake: lookDue(tc.in, d)}
			if p := d.Probation; p != nil {
				got.end, got.looks = p.EndTime.Sub(t0), p.Looks
				if p.NextLookTime != nil {
					got.next = p.NextLookTime.Sub(t0)
				}
			}
			if diff := cmp.Diff(fmt.Sprintf("%+v", tc.want), fmt.Sprintf("%+v", got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// A deadline in the past would reconcile again and again: the wake-ups of a due look
			// have a schedule of their own.
			due := time.Time{}
			if at := t0.Add(got.next); at.After(tc.in.Now) {
				due = at
			}
			if d.Phase == v1alpha1.ReleaseSuccess && !d.Deadline.Equal(due) {
				t.Errorf("the next decision is at %s, want %s", d.Deadline, due)
			}
		})
	}
}

func TestALateFailDuringProbationSuspendsTheWorkload(t *testing.T) {
	in := release(1, finished(1, 1), complete1, judgedByMetrics(1, time.Hour), succeededAtT0, until(time.Hour, 0, 10*time.Minute),
		seen(1, 10*time.Minute, judgev1alpha1.VerdictFail, true), lateFail)
	d := Decide(in)
	if d.Phase != v1alpha1.ReleaseSuspend || d.Action != ActionSuspend || d.Reason != v1alpha1.ReasonCheckFailed {
		t.Errorf("phase %s, action %q, reason %s", d.Phase, d.Action, d.Reason)
	}
	newer(&in)
	if d = Decide(in); d.Phase != v1alpha1.ReleaseFailed {
		t.Errorf("the fail of a replaced release: phase %s", d.Phase)
	}
}

func TestTheEndOfAProbationByANewerReleaseKeepsTheCounts(t *testing.T) {
	in := release(1, finished(1, 1), complete1, judgedByMetrics(1, time.Hour), succeededAtT0)
	in.ChangeWorkload = written(in)
	newer(&in)
	in.Pods = nil // the pods of the former release are deleted
	next, kind := nextStatus(in, Decide(in))
	if _, write := writeDelay(kind, in); !write {
		t.Fatal("the end of the probation is not written")
	}
	if next.Status.Probation == nil || next.Status.Probation.NextLookTime != nil || next.Status.Counts.Passed != 1 {
		t.Errorf("probation %+v, counts %+v", next.Status.Probation, next.Status.Counts)
	}
	in.ChangeWorkload = next
	if _, kind := nextStatus(in, Decide(in)); kind == transition {
		t.Error("it is written again")
	}
}

// Each look of a release costs one wake-up, and none repeats while the judge is at work.
func TestALookOfAProbationCostsOneWakeUp(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(t0)
	sent := &outbox{}
	r := &Reconciler{sender: sent, clock: clock, probationWakeUps: resend.NewWithin(clock, minProbationWakeUp, maxProbationWakeUp)}
	in := release(1, finished(1, 1), complete1, judgedByMetrics(1, time.Hour), succeededAtT0)
	wake := func(at time.Duration) {
		t.Helper()
		clock.SetTime(t0.Add(at))
		in.Now = clock.Now()
		d := Decide(in)
		in.ChangeWorkload = derive(in, d) // it is written before
		if _, err := r.wakeJudge(t.Context(), in, Decide(in)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want int) {
		t.Helper()
		if len(sent.sent) != want {
			t.Errorf("%s: %d wake-ups, want %d", when, len(sent.sent), want)
		}
	}
	wake(0)
	wake(9 * time.Minute)
	check("before the look", 0)
	wake(10 * time.Minute)
	wake(10*time.Minute + 30*time.Second)
	check("at the look", 1)
	seen(1, 10*time.Minute, judgev1alpha1.VerdictPass, false)(&in)
	wake(20 * time.Minute)
	check("after the look", 1)
	wake(30 * time.Minute)
	check("at the second look", 2)
	wake(31 * time.Minute)
	check("after a lost wake-up", 3)
	for _, e := range sent.sent {
		if e != events.TypeChangePodReady {
			t.Errorf("sent %s", e)
		}
	}
	newer(&in)
	wake(3 * time.Hour)
	check("after a newer release", 3)
}
