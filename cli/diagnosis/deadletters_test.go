package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/events"
)

func TestADeadLetterWaitsUntilItsEffectIsSeen(t *testing.T) {
	undelivered := func(kind, uid string) []corev1.Event {
		return []corev1.Event{{Reason: v1alpha1.ReasonEventUndelivered, InvolvedObject: corev1.ObjectReference{Kind: kind, UID: "u", Name: uid}}, {Reason: "Other"}}
	}
	withBatch := func(phase v1alpha1.BatchPhase) []v1alpha1.ChangePod {
		b := v1alpha1.ChangePod{}
		b.UID, b.Status.Phase = "u", phase
		return []v1alpha1.ChangePod{b}
	}
	withRelease := func(change func(*v1alpha1.ChangeWorkload)) []v1alpha1.ChangeWorkload {
		c := v1alpha1.ChangeWorkload{}
		c.UID = "u"
		change(&c)
		return []v1alpha1.ChangeWorkload{c}
	}
	reported := undelivered("ChangeWorkload", "r")
	reported[0].Message = "event " + events.TypeChangeWorkloadSuspended + " could not be delivered to report"
	malformed := func(kind, eventType string) []corev1.Event {
		letters := undelivered(kind, "b")
		letters[0].Message = "event " + eventType + " could not be delivered to verdict"
		return letters
	}
	ready := undelivered("ChangeWorkload", "r")
	ready[0].Message = "event " + events.TypeOrderReady + " could not be delivered to submit"
	nothing := func(*v1alpha1.ChangeWorkload) {}
	due := withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.OrderStep = &v1alpha1.OrderStep{} })
	for name, tc := range map[string]struct {
		letters  []corev1.Event
		releases []v1alpha1.ChangeWorkload
		batches  []v1alpha1.ChangePod
		waiting  bool
	}{
		"a batch that was not called":   {undelivered("ChangePod", "b"), nil, withBatch(v1alpha1.BatchPreWait), true},
		"a batch that ended":            {undelivered("ChangePod", "b"), nil, withBatch(v1alpha1.BatchExecuteDone), false},
		"a batch that was deleted":      {undelivered("ChangePod", "b"), nil, nil, false},
		"an order with a due step":      {undelivered("ChangeWorkload", "r"), withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.OrderStep = &v1alpha1.OrderStep{} }), nil, true},
		"announcements and no due step": {ready, withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.Announcements = make([]v1alpha1.Announcement, 1) }), nil, false},
		"a release without a due step":  {undelivered("ChangeWorkload", "r"), withRelease(nothing), nil, false},
		"a finished pod":                {undelivered("Pod", "p"), nil, nil, false},
		"a report about a release":      {reported, withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.OrderStep = &v1alpha1.OrderStep{} }), nil, false},
		"a malformed verdict":           {malformed("ChangePod", events.TypeChangePodVerdict), nil, withBatch(v1alpha1.BatchPreWait), false},
		"one of an order":               {malformed("ChangeWorkload", events.TypeOrderVerdict), due, nil, false},
		"a verdict in the inbox":        {nil, withRelease(func(c *v1alpha1.ChangeWorkload) { c.Status.Inbox = make([]v1alpha1.InboxVerdict, 1) }), nil, true},
		"a release with an empty inbox": {undelivered("ChangeWorkload", "r"), withRelease(nothing), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.DeadLetters(tc.letters, tc.releases, tc.batches, "")
			if len(got) != 1 || got[0].Waiting != tc.waiting || got[0].Explanation == "" {
				t.Errorf("got %+v, want waiting %t", got, tc.waiting)
			}
		})
	}
}

func TestAStepOfAnOrderWaitsUntilItsFactsShowItsEffect(t *testing.T) {
	const start, finish, closing = v1alpha1.OrderStepStart, v1alpha1.OrderStepFinish, v1alpha1.OrderStepClose
	now := metav1.NewTime(time.Unix(1, 0))
	micro := metav1.NewMicroTime(now.Time)
	opened := func(s *v1alpha1.ChangeWorkloadStatus) { s.Order = &v1alpha1.Order{OpenedTime: &now} }
	called := func(stage v1alpha1.Stage, answered bool) func(*v1alpha1.ChangeWorkloadStatus) {
		return func(s *v1alpha1.ChangeWorkloadStatus) {
			call := v1alpha1.Submission{Stage: stage}
			if answered {
				call.AnsweredTime = &micro
			}
			s.Order.Submissions = append(s.Order.Submissions, call)
		}
	}
	verdict := func(stage v1alpha1.Stage) func(*v1alpha1.ChangeWorkloadStatus) {
		return func(s *v1alpha1.ChangeWorkloadStatus) {
			s.OrderVerdicts = append(s.OrderVerdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: "pass"})
		}
	}
	phase := func(p v1alpha1.ReleasePhase) func(*v1alpha1.ChangeWorkloadStatus) {
		return func(s *v1alpha1.ChangeWorkloadStatus) { s.Phase = p }
	}
	condition := func(kind apis.ConditionType, reason string) func(*v1alpha1.ChangeWorkloadStatus) {
		return func(s *v1alpha1.ChangeWorkloadStatus) {
			s.Conditions = append(s.Conditions, apis.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: reason})
		}
	}
	closed := func(s *v1alpha1.ChangeWorkloadStatus) { s.Order.Closing = &v1alpha1.OrderClosing{AnsweredTime: &micro} }
	passed := func(s *v1alpha1.ChangeWorkloadStatus) { s.OrderResult = &v1alpha1.OrderResult{Verdict: "pass"} }
	skipped := func(s *v1alpha1.ChangeWorkloadStatus) { s.Order.Skipped = true }
	pre, post := v1alpha1.StagePre, v1alpha1.StagePost
	type facts []func(*v1alpha1.ChangeWorkloadStatus)
	for name, tc := range map[string]struct {
		step  v1alpha1.OrderStepName
		facts facts
		want  bool
	}{
		"an order that is not open":             {start, nil, true},
		"no server is configured":               {start, facts{condition(v1alpha1.ReleaseOrderAccepted, v1alpha1.ReasonNoServerConfigured)}, false},
		"failed, as the order is not accepted":  {start, facts{phase(v1alpha1.ReleaseSuspend), condition(v1alpha1.ReleaseOrderAccepted, v1alpha1.ReasonOrderNotAccepted)}, false},
		"an order whose start was not called":   {start, facts{opened}, true},
		"a start that was not answered":         {start, facts{opened, called(pre, false)}, true},
		"a start without a verdict":             {start, facts{opened, called(pre, true)}, true},
		"a start with a verdict":                {start, facts{opened, called(pre, true), verdict(pre)}, false},
		"a check that the server skips":         {start, facts{opened, skipped}, false},
		"a verdict of a person":                 {start, facts{opened, called(pre, true), passed}, false},
		"a finish that was not called":          {finish, facts{opened, called(pre, true), verdict(pre)}, true},
		"an unjudged order, not answered":       {finish, facts{opened, called(post, false), condition(v1alpha1.ReleaseOrderJudged, v1alpha1.ReasonHeldUnjudged)}, true},
		"an unjudged order, answered":           {finish, facts{opened, called(post, true), condition(v1alpha1.ReleaseOrderJudged, v1alpha1.ReasonHeldUnjudged)}, false},
		"a finish with a verdict":               {finish, facts{opened, called(post, true), verdict(post)}, false},
		"an open order of a release that ended": {closing, facts{opened, phase(v1alpha1.ReleaseSuccess)}, true},
		"a closed order":                        {closing, facts{opened, closed, phase(v1alpha1.ReleaseSuccess)}, false},
		"superseded before its order opened":    {start, facts{phase(v1alpha1.ReleaseFailed)}, false},
		"timed out":                             {start, facts{phase(v1alpha1.ReleaseFailed), condition(apis.ConditionSucceeded, v1alpha1.ReasonReleaseTimedOut)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.ChangeWorkload{}
			c.UID, c.Status.OrderStep = "u", &v1alpha1.OrderStep{Name: tc.step}
			for _, f := range tc.facts {
				f(&c.Status)
			}
			wakeUp := corev1.Event{Reason: v1alpha1.ReasonEventUndelivered, InvolvedObject: corev1.ObjectReference{Kind: "ChangeWorkload", UID: "u"}}
			if got := diagnosis.DeadLetters([]corev1.Event{wakeUp}, []v1alpha1.ChangeWorkload{c}, nil, ""); got[0].Waiting != tc.want {
				t.Errorf("got %+v, want waiting %t", got[0], tc.want)
			}
		})
	}
}

func TestAWakeUpForALookDuringProbationWaitsUntilTheLook(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	due, later := at(100), at(700)
	b := v1alpha1.ChangePod{}
	b.UID, b.OwnerReferences = "b", []metav1.OwnerReference{{UID: "r", Controller: new(true)}}
	b.Status.Phase = v1alpha1.BatchExecuteDone
	for name, tc := range map[string]struct {
		next *metav1.Time
		sent metav1.Time
		want bool
	}{
		"the look is due":           {&due, at(101), true},
		"function judge looked":     {&later, at(101), false},
		"the probation ended":       {nil, at(101), false},
		"a wake-up of the analysis": {&due, at(50), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.ChangeWorkload{}
			c.UID, c.Status.Phase, c.Status.Probation = "r", v1alpha1.ReleaseSuccess, &v1alpha1.Probation{NextLookTime: tc.next}
			e := corev1.Event{Reason: v1alpha1.ReasonEventUndelivered, InvolvedObject: corev1.ObjectReference{Kind: "ChangePod", UID: "b"}, LastTimestamp: tc.sent}
			if got := diagnosis.DeadLetters([]corev1.Event{e}, []v1alpha1.ChangeWorkload{c}, []v1alpha1.ChangePod{b}, ""); got[0].Waiting != tc.want {
				t.Errorf("got %+v, want waiting %t", got[0], tc.want)
			}
		})
	}
}

func TestAReportCanBeReplayedOnceAndAWakeUpIsRepeated(t *testing.T) {
	const stored = "{}"
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        diagnosis.Replay
		refused     bool
	}{
		"a report":                   {map[string]string{v1alpha1.CloudEventAnnotation: stored}, diagnosis.ReplayPossible, false},
		"a report that was replayed": {map[string]string{v1alpha1.CloudEventAnnotation: stored, v1alpha1.ReplayedAnnotation: "2026-02-03T04:05:06Z"}, diagnosis.Replayed, false},
		"a wake-up":                  {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			k := corev1.Event{Reason: v1alpha1.ReasonEventUndelivered, InvolvedObject: corev1.ObjectReference{Kind: "ChangePod", UID: "b"}}
			k.Name, k.Annotations = "web.1", tc.annotations
			batch := v1alpha1.ChangePod{}
			batch.UID = "b"
			letters := diagnosis.DeadLetters([]corev1.Event{k}, nil, []v1alpha1.ChangePod{batch}, "")
			if len(letters) != 1 || letters[0].Replay != tc.want || letters[0].Waiting != tc.refused {
				t.Errorf("got %+v, want replay %q", letters, tc.want)
			}
			if _, err := diagnosis.CheckReplay(letters, "web.1", ""); (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "sends it again") {
				t.Errorf("error %v, want one: %t", err, tc.refused)
			}
			if _, err := diagnosis.CheckReplay(letters, "other", ""); err == nil {
				t.Error("a name that does not exist is accepted")
			}
		})
	}
}
