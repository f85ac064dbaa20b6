package changeworkload

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// written returns the ChangeWorkload with the derived status of the decision.
func written(in Input) *v1alpha1.ChangeWorkload { return derive(in, Decide(in)) }

func TestAChangeIsProgressOrATransition(t *testing.T) {
	first := release(3, finished(1, 1), judged(1, "pass"))
	base := written(first)
	for name, tc := range map[string]struct {
		in   Input
		want change
	}{
		"nothing":               {first, same},
		"one more pod passed":   {release(3, finished(1, 2), judged(1, "pass"), judged(2, "pass")), progress},
		"a pod failed":          {release(3, finished(1, 2), judged(1, "pass"), judged(2, "fail")), transition},
		"the release ended":     {release(1, finished(1, 1), judged(1, "pass"), complete1), transition},
		"a pod passed unjudged": {release(3, finished(1, 1), judged(1, "done")), transition},
		"an event was accepted": {release(3, finished(1, 1), judged(1, "pass"), func(in *Input) { in.DeliveredAnnouncements = deliveredOf(base) }), announced},
		"only the time":         {release(3, finished(1, 1), judged(1, "pass"), after(time.Second)), same},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.ChangeWorkload = base
			if got := compare(base, derive(tc.in, Decide(tc.in))); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// deliveredOf are the ids of all announcements.
func deliveredOf(c *v1alpha1.ChangeWorkload) map[string]bool {
	in := Input{ChangeWorkload: c}
	deliveredAll(&in)
	return in.DeliveredAnnouncements
}

func TestProgressIsDelayedAndATransitionIsNot(t *testing.T) {
	over := func(in *Input) {
		in.ChangeWorkload.Status.Phase = v1alpha1.ReleaseSuccess
		in.Workload.Attempt++
	}
	succeeded := func(in *Input) { in.ChangeWorkload.Status.Phase = v1alpha1.ReleaseSuccess }
	tests := map[string]struct {
		kind  change
		pods  int32
		in    func(*Input)
		wait  time.Duration
		write bool
	}{
		"nothing":                           {kind: same},
		"progress is written once a second": {kind: progress, wait: time.Second, write: true},
		"progress of 500 pods is written every 5 seconds":   {kind: progress, pods: 500, wait: 5 * time.Second, write: true},
		"progress of 5000 pods is written every 10 seconds": {kind: progress, pods: 5000, wait: 10 * time.Second, write: true},
		"progress after a long time is written at once":     {kind: progress, in: func(in *Input) { in.Now = in.Now.Add(time.Hour) }, write: true},
		"progress of a replaced Success is not written":     {kind: progress, in: over},
		"an announcement of a replaced Success is removed":  {kind: announced, in: over, wait: time.Second, write: true},
		"progress of a superseded release is written": {kind: progress, in: func(in *Input) {
			in.ChangeWorkload.Status.Phase = v1alpha1.ReleaseFailed
			in.Workload.Attempt++
		}, wait: time.Second, write: true},
		"progress of a current Success is written every 10 minutes":   {kind: progress, in: succeeded, wait: 10 * time.Minute, write: true},
		"an announcement of a current Success is removed in a second": {kind: announced, in: succeeded, wait: time.Second, write: true},
		"a transition of a current Success is written at once":        {kind: transition, in: succeeded, write: true},
		"a transition is written at once":                             {kind: transition, write: true},
		"a transition of a replaced Success is written at once":       {kind: transition, in: over, write: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := release(max(3, tc.pods), finished(1, 1))
			in.ChangeWorkload = written(in)
			in.Now = t0
			if tc.in != nil {
				tc.in(&in)
			}
			if wait, write := writeDelay(tc.kind, in); wait != tc.wait || write != tc.write {
				t.Errorf("delay %s, written: %t; want %s, %t", wait, write, tc.wait, tc.write)
			}
		})
	}
}

func TestListsAreLimitedAndCountsAreComplete(t *testing.T) {
	in := release(150, finished(1, 150))
	for n := 1; n <= 150; n++ {
		judged(n, map[bool]string{true: "fail", false: "pass"}[n > 30])(&in)
	}
	st := written(in).Status
	if len(st.DefenseCheckFailPods) != 120 || st.Counts.Failed != 120 || st.Counts.Passed != 30 {
		t.Errorf("%d fails listed, counts %+v", len(st.DefenseCheckFailPods), st.Counts)
	}
	st = written(release(150, finished(1, 150))).Status
	if len(st.DefensePreparingPods) != listLimit || st.Counts.Preparing != 150 {
		t.Errorf("%d listed, counts %+v", len(st.DefensePreparingPods), st.Counts)
	}
}

func TestTheMessagesOfAThousandFailedPodsFitIntoOneObject(t *testing.T) {
	in := release(1000, finished(1, 1000))
	for n := 1; n <= 1000; n++ {
		judged(n, "fail")(&in)
		in.ChangePods[n-1].Status.Verdicts[0].Message = strings.Repeat("\u00e9", 512)
	}
	size := 0
	for _, p := range written(in).Status.DefenseCheckFailPods {
		size += len(p.Message)
		if !utf8.ValidString(p.Message) {
			t.Fatalf("%q is cut within a character", p.Message)
		}
	}
	if size == 0 || size > maxMessageBytes {
		t.Errorf("messages of %d bytes", size)
	}
}

// Pods whose fail is only in the status stay in the list: a fail stays when the batch was deleted.
func TestTheFailedPodsOfALargeReleaseFitIntoOneObject(t *testing.T) {
	in := release(3000, finished(1, 3000))
	for n := 1; n <= 3000; n++ {
		judged(n, "fail")(&in)
	}
	const deleted = 3001
	in.ChangeWorkload.Status.DefenseCheckFailPods = []v1alpha1.PodSummary{summary(deleted)}
	st := written(in).Status
	if len(st.DefenseCheckFailPods) != maxFailedPods || st.Counts.Failed != 3001 {
		t.Errorf("%d fails listed, counts %+v", len(st.DefenseCheckFailPods), st.Counts)
	}
	if st.DefenseCheckFailPods[0].UID != summary(deleted).UID {
		t.Errorf("the first is %+v", st.DefenseCheckFailPods[0])
	}
	more := written(in)
	more.Status.Counts.Failed++
	if got := compare(written(in), more); got != transition {
		t.Errorf("another fail is %v", got)
	}
}

func TestAnUnjudgedPassIsAlwaysReported(t *testing.T) {
	c := written(release(1, finished(1, 1), judged(1, "done"), complete1))
	if cond := c.Status.GetCondition(apis.ConditionSucceeded); !cond.IsTrue() {
		t.Errorf("Succeeded is %+v", cond)
	}
	cond := c.Status.GetCondition(v1alpha1.ReleaseJudged)
	if !cond.IsFalse() || cond.Reason != v1alpha1.ReasonPassedUnjudged {
		t.Errorf("Judged is %+v", cond)
	}
	if c.Status.Counts.Unjudged != 1 {
		t.Errorf("counts are %+v", c.Status.Counts)
	}
}

func TestInShadowModeAFailIsReportedAndNothingIsHeld(t *testing.T) {
	in := release(1, finished(1, 1), judged(1, "fail"))
	in.Settings = settings.FromObjects([]*v1alpha1.OpsConfigInfo{{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigShadow, Enable: true},
	}})
	if d := Decide(in); d.Phase != v1alpha1.ReleaseSuspend || d.Action != ActionNone {
		t.Errorf("decided %s and %q", d.Phase, d.Action)
	}
	cond := written(in).Status.GetCondition(v1alpha1.ReleaseHeld)
	if !cond.IsFalse() || cond.Reason != v1alpha1.ReasonShadow {
		t.Errorf("Held is %+v", cond)
	}
}

func TestAVerdictOfTheOrderInTheInboxIsSentUntilItIsRecorded(t *testing.T) {
	fail := v1alpha1.InboxVerdict{NodeID: "order-node", Stage: v1alpha1.StagePost, Verdict: "fail"}
	fail.Time.Time = t0
	open := release(1, orderOpen).ChangeWorkload
	started := release(1, called(v1alpha1.StagePre, "")).ChangeWorkload
	for name, tc := range map[string]struct {
		release *v1alpha1.ChangeWorkload
		after   time.Duration
		want    inboxAction
	}{
		"its node is not known yet":                {open, time.Minute, inboxWait},
		"its node stayed unknown":                  {open, time.Hour, inboxRemove},
		"its node is known":                        {started, time.Hour, inboxSend},
		"a verdict of lower rank is recorded":      {release(1, called(v1alpha1.StagePre, ""), orderSaid(v1alpha1.StagePost, "pass")).ChangeWorkload, 0, inboxSend},
		"the verdict of another stage is recorded": {release(1, called(v1alpha1.StagePre, ""), orderSaid(v1alpha1.StagePre, "fail")).ChangeWorkload, 0, inboxSend},
		"it is recorded":                           {release(1, called(v1alpha1.StagePre, ""), orderSaid(v1alpha1.StagePost, "fail")).ChangeWorkload, 0, inboxRemove},
	} {
		t.Run(name, func(t *testing.T) {
			if got, batch := decideInbox(fail, tc.release, nil, t0.Add(tc.after)); got != tc.want || batch != nil {
				t.Errorf("got %d for %v, want %d", got, batch, tc.want)
			}
		})
	}
}

func TestAVerdictOfABatchInTheInboxIsSentUntilItIsRecorded(t *testing.T) {
	batch := func(node, word string) []*v1alpha1.ChangePod {
		c := &v1alpha1.ChangePod{}
		c.UID, c.Status.ChangePodID = types.UID("u"), node
		if word != "" {
			c.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: word}}
		}
		return []*v1alpha1.ChangePod{c}
	}
	fail := v1alpha1.InboxVerdict{NodeID: "n", Stage: v1alpha1.StagePost, Verdict: "fail"}
	fail.Time.Time = t0
	pass := fail
	pass.Verdict = "pass"
	withoutRules := pass
	withoutRules.WithoutRules = true
	gotWithoutRules := batch("n", "pass")
	gotWithoutRules[0].Status.Verdicts[0].UnconfirmedPass = true
	names := pass
	names.PodResults = []v1alpha1.PodSummary{{Pod: "p", Verdict: "fail"}}
	of := func(results ...v1alpha1.PodSummary) []*v1alpha1.ChangePod {
		pods := batch("n", "pass")
		pods[0].Spec.PodInfos = []v1alpha1.PodSummary{{Pod: "p", UID: "1"}}
		pods[0].Status.PodResults = results
		return pods
	}
	for name, tc := range map[string]struct {
		entry v1alpha1.InboxVerdict
		pods  []*v1alpha1.ChangePod
		after time.Duration
		want  inboxAction
	}{
		"the batch has no verdict":                             {fail, batch("n", ""), time.Hour, inboxSend},
		"a pass is recorded, and this is a fail":               {fail, batch("n", "pass"), 0, inboxSend},
		"it is recorded":                                       {fail, batch("n", "fail"), 0, inboxRemove},
		"a fail is recorded, and this is a pass":               {pass, batch("n", "fail"), 0, inboxRemove},
		"a pass without rules is recorded, and this is a pass": {pass, gotWithoutRules, 0, inboxSend},
		"a pass without rules is recorded, and this is one":    {withoutRules, gotWithoutRules, 0, inboxRemove},
		"a pass that fails a pod":                              {names, of(), 0, inboxSend},
		"a pass that fails a pod, whose fail is recorded":      {names, of(v1alpha1.PodSummary{Pod: "p", Verdict: "fail", Source: v1alpha1.SourceServer}), 0, inboxRemove},
		"a pass that fails a pod that a person judged":         {names, of(v1alpha1.PodSummary{Pod: "p", Verdict: "pass"}), 0, inboxRemove},
		"a pass that fails an unknown pod":                     {names, batch("n", "pass"), 0, inboxRemove},
		"its node is not known yet":                            {fail, batch("", ""), time.Minute, inboxWait},
		"its node stayed unknown for an hour":                  {fail, batch("m", ""), time.Hour, inboxRemove},
		"its node is unknown, and its time is in the future":   {fail, batch("m", ""), -time.Hour, inboxRemove},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := decideInbox(tc.entry, &v1alpha1.ChangeWorkload{}, tc.pods, t0.Add(tc.after)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAReleaseWhosePodsAllPassedIsJudgedAlthoughItsOrderFailed(t *testing.T) {
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	for name, tc := range map[string]struct {
		edits []func(*Input)
		want  string
	}{
		"the order failed":                      {[]func(*Input){complete1, called(post, ""), orderSaid(post, "fail")}, "True"},
		"the order has no verdict yet":          {[]func(*Input){complete1, called(post, "")}, "True"},
		"the order failed, the rollout goes on": {[]func(*Input){called(post, ""), orderSaid(post, "fail")}, "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(1, append([]func(*Input){withServer, finished(1, 1), judged(1, "pass"), called(pre, ""), orderSaid(pre, "pass")}, tc.edits...)...)
			cond := written(in).Status.GetCondition(v1alpha1.ReleaseJudged)
			if string(cond.Status) != tc.want {
				t.Errorf("condition Judged is %+v, want %s", cond, tc.want)
			}
		})
	}
}

func TestConditionJudgedNamesTheSettingThatDecides(t *testing.T) {
	stages := func(pre, post v1alpha1.NoVerdictPolicy) func(*Input) {
		return func(in *Input) { in.Settings.NoVerdictPre, in.Settings.NoVerdictPost = pre, post }
	}
	for name, tc := range map[string]struct {
		options []func(*Input)
		want    string
	}{
		"passed by default":      {nil, "unjudged pods passed: no-verdict is Pass"},
		"failed by stage PRE":    {[]func(*Input){stages(v1alpha1.NoVerdictFail, "")}, "unjudged pods failed: no-verdict-pre is Fail"},
		"failed by stage POST":   {[]func(*Input){stages("", v1alpha1.NoVerdictFail)}, "unjudged pods failed: no-verdict-post is Fail"},
		"held by stage POST":     {[]func(*Input){stages("", v1alpha1.NoVerdictHold)}, "wait for a late verdict or a person (no-verdict-post is Hold)"},
		"stricter after its end": {[]func(*Input){was(v1alpha1.ReleaseSuccess), stages(v1alpha1.NoVerdictFail, "")}, "unjudged pods passed"},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(1, append([]func(*Input){finished(1, 1), judged(1, "done"), complete1}, tc.options...)...)
			cond := written(in).Status.GetCondition(v1alpha1.ReleaseJudged)
			if !cond.IsFalse() || !strings.HasSuffix(cond.Message, tc.want) {
				t.Errorf("condition Judged is %+v, want %q", cond, tc.want)
			}
		})
	}
}

// Pods that start after the success are not judged.
func TestASuccessWithUnjudgedPodsStaysUnjudgedWhenTheyAreDeleted(t *testing.T) {
	const unjudged, verdict = v1alpha1.ReasonPassedUnjudged, v1alpha1.ReasonVerdictReceived
	type options []func(*Input)
	succeeded := options{finished(1, 1), judged(1, "done"), complete1, recorded}
	replacedUnjudged := options{judged(1, "done"), finished(2, 2), judged(2, "pass"), complete1, recorded}
	for name, tc := range map[string]struct {
		before, after options
		want          string
	}{
		"scaled to 0":                             {succeeded, options{scaledTo(0)}, unjudged},
		"scaled to 0, a look later":               {succeeded, options{scaledTo(0), recorded}, unjudged},
		"another pod":                             {succeeded, options{scaledTo(1), finished(2, 2)}, unjudged},
		"a newer release":                         {succeeded, options{newer, scaledTo(1)}, unjudged},
		"a stricter policy":                       {succeeded, options{scaledTo(0), noVerdict("Fail")}, unjudged},
		"a person passed it then":                 {succeeded, options{scaledTo(0), person("pass")}, verdict},
		"a person failed it then":                 {succeeded, options{scaledTo(0), person("fail")}, verdict},
		"it was replaced before, and that judged": {replacedUnjudged, options{scaledTo(0)}, verdict},
	} {
		t.Run(name, func(t *testing.T) {
			cond := written(release(1, slices.Concat(tc.before, tc.after)...)).Status.GetCondition(v1alpha1.ReleaseJudged)
			if cond.GetReason() != tc.want || tc.want == unjudged && cond.Message != "unjudged pods passed: no-verdict is Pass" {
				t.Errorf("condition Judged is %+v, want %s", cond, tc.want)
			}
		})
	}
}

// The first pod is deleted with its verdict pending, as by a person who scales to 0.
func TestAReleaseThatIsScaledToZeroBeforeAPodPassedSucceedsWithoutPods(t *testing.T) {
	const (
		none, verdict = v1alpha1.ReasonNoVerdict, v1alpha1.ReasonVerdictReceived
		pre, post     = v1alpha1.StagePre, v1alpha1.StagePost
	)
	type options []func(*Input)
	for name, tc := range map[string]struct {
		options  options
		reason   string
		withPods bool
	}{
		"it was checked":               {options{judged(1, "")}, none, false},
		"it was checked, a look later": {options{judged(1, ""), recorded}, none, false},
		"it was held":                  {options{judged(1, "done"), noVerdict("Hold")}, none, false},
		"it was held, a look later":    {options{judged(1, "done"), noVerdict("Hold"), recorded}, none, false},
		"it passed unjudged":           {options{judged(1, "done")}, none, false},
		"it was unjudged after that":   {options{judged(1, ""), recorded, unjudgedLater}, none, false},
		"it passed":                    {options{judged(1, "pass")}, verdict, true},
		"it passed after that":         {options{judged(1, ""), recorded, person("pass")}, verdict, true},
		"the order has no verdict yet": {options{judged(1, ""), withServer, called(pre, ""), orderSaid(pre, "pass"), called(post, "")}, v1alpha1.ReasonJudging, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := written(release(0, append(options{complete1}, tc.options...)...))
			if got := c.Status.GetCondition(v1alpha1.ReleaseJudged).GetReason(); got != tc.reason || c.SucceededWithPods() != tc.withPods {
				t.Errorf("%s, Judged has reason %s, succeeded with pods %t; want %s, %t", c.Status.Phase, got, c.SucceededWithPods(), tc.reason, tc.withPods)
			}
		})
	}
}

// The hold stays recorded: otherwise the rollout would be held again.
func TestARolloutThatWasResumedByHandIsNotHeld(t *testing.T) {
	changedNothing := func(d *appsv1.Deployment) {
		d.Annotations[v1alpha1.HoldAnnotation] = `{"attempt":2,"former":true,"unjudged":true}`
	}
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		held   corev1.ConditionStatus
		reason string
	}{
		"held":                   {func(*appsv1.Deployment) {}, corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged},
		"resumed":                {func(d *appsv1.Deployment) { d.Spec.Paused = false }, corev1.ConditionFalse, v1alpha1.ReasonResumedUnjudged},
		"paused before the hold": {changedNothing, corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged},
		"every pod was replaced before the hold": {func(d *appsv1.Deployment) {
			changedNothing(d)
			d.Spec.Paused, d.Status.Replicas, d.Status.UpdatedReplicas = false, 3, 3
		}, corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling()
			d.Spec.Paused, d.Annotations[v1alpha1.HoldAnnotation] = true, `{"attempt":2,"unjudged":true}`
			tc.change(d)
			in := release(2, finished(1, 1), judged(1, "done"), starting(2), noVerdict("Hold"))
			in.Workload = workloadOf(of(t, d), workload.ExcludedNodes{})
			decision := Decide(in)
			st := derive(in, decision).Status
			if held := st.GetCondition(v1alpha1.ReleaseHeld); held.Status != tc.held || held.Reason != tc.reason || decision.Action != ActionNone {
				t.Errorf("Held is %+v, action %q", held, decision.Action)
			}
			if stalled := st.GetCondition(v1alpha1.ReleaseStalled).IsTrue(); stalled != (tc.held == corev1.ConditionTrue) {
				t.Errorf("Stalled is %v", stalled)
			}
			recorder := record.NewFakeRecorder(2)
			ctx, next := controller.WithEventRecorder(t.Context(), recorder), derive(in, decision)
			for _, old := range []*v1alpha1.ChangeWorkload{in.ChangeWorkload, next} {
				recordNotHeld(ctx, old, next, of(t, d))
			}
			if got, want := len(recorder.Events), map[bool]int{true: 1}[tc.reason == v1alpha1.ReasonResumedUnjudged]; got != want {
				t.Errorf("%d Events, want %d", got, want)
			}
		})
	}
}
