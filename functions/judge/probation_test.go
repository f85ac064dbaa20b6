package judge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// probation is that of the tests. The release succeeded after duration.
const probation = 24 * time.Hour

// passedBatch returns the first batch of a release on probation, which judge metrics passed.
func passedBatch(edit ...func(*v1alpha1.ChangePod)) *v1alpha1.ChangePod {
	return newBatch(1, append([]func(*v1alpha1.ChangePod){func(p *v1alpha1.ChangePod) {
		p.OwnerReferences[0].UID = ft.NewRelease().UID
		p.Spec.Judges[0].ProbationSeconds = int32(probation / time.Second)
		p.Status.Judges = []v1alpha1.JudgeVerdict{{Judge: "metrics", Stage: v1alpha1.StagePost, Verdict: "pass"}}
		p.Status.MetricRecord = &judgev1alpha1.Record{Verdict: judgev1alpha1.VerdictPass, Final: true}
	}}, edit...)...)
}

// onProbation changes the release: it has succeeded, and the next look is due at a time after
// the success.
func (f *fixture) onProbation(t *testing.T, looks int32, next time.Duration, edit ...func(*v1alpha1.ChangeWorkload)) {
	t.Helper()
	c := f.ChangeWorkload(ft.Release)
	success := ft.Now().Add(duration)
	at := metav1.NewTime(success.Add(next))
	c.Status.Phase = v1alpha1.ReleaseSuccess
	c.Status.Probation = &v1alpha1.Probation{EndTime: metav1.NewTime(success.Add(probation)), Looks: looks, NextLookTime: &at}
	for _, e := range edit {
		e(c)
	}
	f.Write(c)
	f.clock.SetTime(at.Time)
}

// recorded is an edit: the batch has the record of a probation.
func recorded(looks int32, verdict judgev1alpha1.Verdict, final bool) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Probation = &judgev1alpha1.Record{Verdict: verdict, Reason: "R", Message: "m", Looks: looks, Final: final, LookTime: metav1.NewTime(ft.Now().Add(duration))}
	}
}

func TestOnlyAFailDuringProbationIsSent(t *testing.T) {
	down := func(context.Context) (judge.Source, error) {
		return judge.Source{}, &functions.ConfigError{Err: errors.New("down")}
	}
	for name, tc := range map[string]struct {
		reader func(context.Context) (judge.Source, error)
		at     time.Duration
		want   judgev1alpha1.Verdict
		reason string
		final  bool
	}{
		"7 % of the requests fail":          {(&traffic{newFails: 7, oldFails: 0.2}).source, 10 * time.Minute, judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse, true},
		"as many fail as before":            {(&traffic{newFails: 0.2, oldFails: 0.2}).source, 10 * time.Minute, judgev1alpha1.VerdictPass, judgev1alpha1.ReasonNoChange, false},
		"as many fail as before at the end": {(&traffic{newFails: 0.2, oldFails: 0.2}).source, probation, judgev1alpha1.VerdictPass, judgev1alpha1.ReasonNoChange, true},
		"Prometheus is down at the end":     {down, probation, judgev1alpha1.VerdictNone, judgev1alpha1.ReasonMetricsUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.reader, passedBatch())
			f.onProbation(t, 0, tc.at)
			if err := f.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			r := f.ChangePod(ft.BatchName(1)).Status.Probation
			if r == nil || r.Verdict != tc.want || r.Reason != tc.reason || r.Final != tc.final || r.Looks != 1 {
				t.Fatalf("record is %+v", r)
			}
			if !f.ChangePod(ft.BatchName(1)).Status.MetricRecord.Final {
				t.Error("the record of the analysis changed")
			}
			if tc.want != judgev1alpha1.VerdictFail {
				if n := len(f.broker.events); n != 0 {
					t.Errorf("%d verdicts were sent", n)
				}
				return
			}
			if got := f.verdict(t); got.Verdict != "fail" || got.Judge != "metrics" || got.UID != passedBatch().UID || got.Message != r.Message || len(r.Metrics) == 0 {
				t.Errorf("sent %+v, %d metrics", got, len(r.Metrics))
			}
		})
	}
}

// interrupted fails queries of slow_total, or all queries.
type interrupted struct {
	*traffic
	all bool
}

func (i interrupted) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	if i.all || strings.Contains(expression, "slow_total") {
		return nil, errors.New("connection refused")
	}
	return i.traffic.Range(ctx, expression, from, to, step)
}

// The requests fail only before the second look, which is due 30 minutes after the success.
func TestALookThatCouldNotReadPrometheusIsMadeAgain(t *testing.T) {
	const due = 30 * time.Minute
	tr := &traffic{newFails: 7, oldFails: 0.2, failsUntil: duration + due}
	current := judge.Source{Reader: interrupted{tr, true}, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}
	f := newFixture(t, func(context.Context) (judge.Source, error) { return current, nil }, passedBatch(recorded(1, judgev1alpha1.VerdictPass, false)))
	f.onProbation(t, 1, due)
	before := f.ChangePod(ft.BatchName(1)).Status.Probation
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.ChangePod(ft.BatchName(1)).Status.Probation); diff != "" || len(f.broker.events) != 0 {
		t.Errorf("the look is counted, %d events: -before +after: %s", len(f.broker.events), diff)
	}
	current.Reader = tr
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	r := f.ChangePod(ft.BatchName(1)).Status.Probation
	if r.Looks != 2 || !r.ComparedSince.Time.Equal(ft.Now().Add(duration)) || f.verdict(t).Verdict != "fail" {
		t.Errorf("record is %+v", r)
	}
}

// slowMetric is a metric that interrupted does not answer.
func slowMetric() judgev1alpha1.Metric {
	return judgev1alpha1.Metric{
		Name: "slow", Kind: judgev1alpha1.KindRatio, Direction: judgev1alpha1.DirectionHigher, Weight: judgev1alpha1.WeightAlone,
		Query: `slow_total{{{pods}}}`, Bad: `slow_errors_total{{{pods}}}`,
	}
}

func TestALookDuringProbationIsMadeOnceAndOnlyWhenItIsDue(t *testing.T) {
	const none = ""
	for name, tc := range map[string]struct {
		batch   func(*v1alpha1.ChangePod)
		release func(*v1alpha1.ChangeWorkload)
		early   time.Duration
		look    bool
		sent    string
	}{
		"the first look":               {look: true, sent: "fail"},
		"a clock that is slightly off": {early: 2 * time.Second, look: true, sent: "fail"},
		"it is not due":                {early: time.Minute},
		"a duplicate wake-up":          {batch: recorded(1, judgev1alpha1.VerdictPass, false)},
		"the second look": {batch: recorded(1, judgev1alpha1.VerdictPass, false), look: true, sent: "fail",
			release: func(c *v1alpha1.ChangeWorkload) { c.Status.Probation.Looks = 1 }},
		"the probation has ended":  {batch: recorded(0, judgev1alpha1.VerdictNone, true)},
		"a newer release ended it": {release: func(c *v1alpha1.ChangeWorkload) { c.Status.Probation.NextLookTime = nil }},
		"the release is suspended": {release: func(c *v1alpha1.ChangeWorkload) { c.Status.Phase = v1alpha1.ReleaseSuspend }},
		"the release runs":         {release: func(c *v1alpha1.ChangeWorkload) { c.Status.Phase = v1alpha1.ReleaseRunning }},
		"no probation is stored":   {release: func(c *v1alpha1.ChangeWorkload) { c.Status.Probation = nil }},
		"a fail that was lost":     {batch: recorded(1, judgev1alpha1.VerdictFail, true), sent: "fail"},
		"a fail that is stored": {batch: func(p *v1alpha1.ChangePod) {
			recorded(1, judgev1alpha1.VerdictFail, true)(p)
			p.Status.Judges[0].Verdict = "fail"
		}},
		"the batch of another release": {batch: func(p *v1alpha1.ChangePod) { p.OwnerReferences[0].UID = "other" }},
		"the batch has no probation":   {batch: func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].ProbationSeconds = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &traffic{newFails: 7, oldFails: 0.2}
			var edits []func(*v1alpha1.ChangePod)
			if tc.batch != nil {
				edits = append(edits, tc.batch)
			}
			f := newFixture(t, tr.source, passedBatch(edits...))
			if tc.release == nil {
				tc.release = func(*v1alpha1.ChangeWorkload) {}
			}
			f.onProbation(t, 0, 10*time.Minute, tc.release)
			f.clock.SetTime(f.clock.Now().Add(-tc.early))
			if err := f.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			sent := none
			if len(f.broker.events) > 0 {
				sent = f.verdict(t).Verdict
			}
			if looked := tr.queries.Load() > 0; looked != tc.look || sent != tc.sent || (f.Patches() > 0) != tc.look {
				t.Errorf("looked %t, sent %q, %d writes, want %t, %q", looked, sent, f.Patches(), tc.look, tc.sent)
			}
		})
	}
}

func TestALateFailThatIsLostIsSentAgain(t *testing.T) {
	tr := &traffic{newFails: 7, oldFails: 0.2}
	f := newFixture(t, tr.source, passedBatch())
	f.onProbation(t, 0, 10*time.Minute)
	f.checkSentAgain(t, tr)
}

func TestADeletedMetricCheckEndsTheProbation(t *testing.T) {
	f := newFixture(t, (&traffic{}).source, passedBatch(func(p *v1alpha1.ChangePod) { p.Spec.Judges[0].Check = "default/deleted" }))
	f.onProbation(t, 0, 10*time.Minute)
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if r := f.ChangePod(ft.BatchName(1)).Status.Probation; r == nil || !r.Final || r.Reason != judge.ReasonNoMetricCheck || r.Looks != 1 || len(f.broker.events) != 0 {
		t.Errorf("record is %+v, %d events", r, len(f.broker.events))
	}
}

// The pods that were claimed may be deleted in the hours of a probation.
func TestAllPodsOfAWorkloadThatOwnsThemAreNewDuringProbation(t *testing.T) {
	f := newFixture(t, (&traffic{}).source, passedBatch())
	f.onProbation(t, 0, 10*time.Minute, func(c *v1alpha1.ChangeWorkload) { c.Spec.WorkloadRef.UID = "statefulset" })
	for name, owner := range map[string]types.UID{"sleep-0": "statefulset", "sleep-1": "statefulset", "other-0": "other"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: ft.Namespace, Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "r"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "sleep", UID: owner, Controller: new(true)}},
		}}
		if err := f.Kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	if got := f.ChangePod(ft.BatchName(1)).Status.Probation.Target; got.New != `namespace="default",pod=~"sleep-0|sleep-1"` || got.Old != "" {
		t.Errorf("compared %+v", got)
	}
}
