package changeworkload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

var t0 = time.Unix(1_700_000_000, 0)

// release returns the input of a release with the desired replicas, at t0.
func release(replicas int32, options ...func(*Input)) Input {
	in := Input{
		Now: t0, Settings: settings.Default(),
		ChangeWorkload: &v1alpha1.ChangeWorkload{
			ObjectMeta: metav1.ObjectMeta{Name: "a--x--v", CreationTimestamp: metav1.NewTime(t0)},
			Spec:       v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: 2},
		},
		Workload: Workload{Version: "v", Attempt: 2, Replicas: replicas, HasDefenseStatus: true},
		// A name that is shorter than the random suffix, such as p1, is that of a pod of any ReplicaSet.
		LatestReplicaSets: []string{"p"},
	}
	for _, o := range options {
		o(&in)
	}
	return in
}

func summary(n int) v1alpha1.PodSummary {
	return v1alpha1.PodSummary{Pod: fmt.Sprintf("p%d", n), UID: types.UID(strconv.Itoa(n))}
}

// finished adds the finished pods n to m.
func finished(n, m int) func(*Input) {
	return func(in *Input) {
		for i := n; i <= m; i++ {
			in.Pods = append(in.Pods, Pod{PodSummary: summary(i), Finished: true, ReadySince: t0.Add(time.Duration(i) * time.Second)})
		}
	}
}

// noLongerReady adds a pod of an age that was Ready once.
func noLongerReady(n int, age time.Duration) func(*Input) {
	return func(in *Input) {
		in.Pods = append(in.Pods, Pod{PodSummary: summary(n), Finished: true, Created: in.Now.Add(-age)})
	}
}

// starting adds a pod that is not finished.
func starting(n int) func(*Input) {
	return func(in *Input) { in.Pods = append(in.Pods, Pod{PodSummary: summary(n)}) }
}

// judged adds a ChangePod of one pod with a POST verdict; "" leaves it pending
// "done" ends it unjudged, and "contradicted" with a pass that the server contradicts.
func judged(n int, word string) func(*Input) {
	return func(in *Input) {
		c := &v1alpha1.ChangePod{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangePodName("a--x--v", n), CreationTimestamp: metav1.NewTime(t0)},
			Spec:       v1alpha1.ChangePodSpec{PodInfos: []v1alpha1.PodSummary{summary(n)}},
		}
		switch word {
		case "":
		case "done":
			c.Status.Phase, c.Status.Message = v1alpha1.BatchExecuteDone, string(v1alpha1.BatchPreFailed)
		case "contradicted":
			c.Status.Phase, c.Status.Message = v1alpha1.BatchExecuteDone, string(v1alpha1.BatchPostTimeout)
			c.Status.Verdicts = []v1alpha1.StageVerdict{
				{Stage: v1alpha1.StagePre, Verdict: "pass"},
				{Stage: v1alpha1.StagePost, Verdict: "pass", UnconfirmedPass: true, Contradicted: true},
			}
		default:
			c.Status.Phase = v1alpha1.BatchExecuteDone
			c.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: word, Message: "because"}}
		}
		in.ChangePods = append(in.ChangePods, c)
	}
}

// person adds the result of a person to the newest ChangePod.
func person(word string) func(*Input) {
	return func(in *Input) { judgedByPerson(len(in.ChangePods), word)(in) }
}

// judgedByPerson adds the result of a person to ChangePod n.
func judgedByPerson(n int, word string) func(*Input) {
	return func(in *Input) {
		c := in.ChangePods[n-1]
		c.Status.PodResults = []v1alpha1.PodSummary{{Pod: c.Spec.PodInfos[0].Pod, Verdict: word}}
	}
}

// nodeOfFirstNotReady: the node of the first pod is not Ready, and Replicas does not include the pod.
func nodeOfFirstNotReady(in *Input) { in.Pods[0].OnNotReadyNode = true }

// unavailable sets how many of the desired pods are not available.
func unavailable(n int32) func(*Input) {
	return func(in *Input) { in.Workload.Unavailable = n }
}

// ordered adds condition OrderAccepted.
func ordered(status corev1.ConditionStatus, reason string, since time.Time) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
			Type: v1alpha1.ReleaseOrderAccepted, Status: status, Reason: reason,
			LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(since)},
		})
	}
}
func asked(in *Input) {
	ordered(corev1.ConditionUnknown, v1alpha1.ReasonOrderPending, t0)(in)
	in.ChangeWorkload.Status.Order = &v1alpha1.Order{RequestedTime: &metav1.Time{Time: t0}}
}

// inQueue: the call that opens the order waits for its turn.
func inQueue(in *Input) {
	ordered(corev1.ConditionUnknown, v1alpha1.ReasonOrderPending, t0)(in)
	atStep(v1alpha1.OrderStepStart, "")(in)
}

// woken: the first wake-up of the step was sent.
func woken(at time.Duration) func(*Input) {
	return func(in *Input) { in.StepWokenSince = t0.Add(at) }
}

// inQueueAgain: the effect of the wake-up was not seen, and its call waits for another turn.
func inQueueAgain(in *Input) { in.StepWokenSince = time.Time{} }

func behind(in *Input)    { in.Workload.Version, in.Workload.Attempt = "u", 1 }
func current(in *Input)   { in.Workload.Version, in.Workload.Attempt = "v", 2 }
func unstamped(in *Input) { in.Workload.Version, in.Workload.Attempt = "", -1 }

func complete1(in *Input)   { in.Workload.Updated = true }
func withServer(in *Input)  { in.ServerConfigured = true }
func notBlocking(in *Input) { in.Settings.Blocking = false }
func noVerdict(p v1alpha1.NoVerdictPolicy) func(*Input) {
	return func(in *Input) { in.Settings.NoVerdict = p }
}
func after(d time.Duration) func(*Input) { return func(in *Input) { in.Now = t0.Add(d) } }
func decidingSince(d time.Duration) func(*Input) {
	return func(in *Input) { in.DecidingSince = t0.Add(d) }
}
func percent(n int32) func(*Input) { return func(in *Input) { in.Settings.BatchPercent = n } }
func was(p v1alpha1.ReleasePhase) func(*Input) {
	return func(in *Input) { in.ChangeWorkload.Status.Phase = p }
}

// scaledTo scales the workload after its pods were deleted.
func scaledTo(replicas int32) func(*Input) {
	return func(in *Input) { in.Workload.Replicas, in.Pods = replicas, nil }
}

// judgedSince: condition Judged has been Unknown for some time.
func judgedSince(at time.Duration) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
			Type: v1alpha1.ReleaseJudged, Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonJudging,
			LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(t0.Add(at))},
		})
	}
}

// heldCondition adds condition Held with its last transition.
func heldCondition(status corev1.ConditionStatus, at time.Duration) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
			Type: v1alpha1.ReleaseHeld, Status: status, Reason: "r", LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(t0.Add(at))},
		})
	}
}

// unjudgedLater ends the newest batch unjudged.
func unjudgedLater(in *Input) {
	status := &in.ChangePods[len(in.ChangePods)-1].Status
	status.Phase, status.Message = v1alpha1.BatchExecuteDone, string(v1alpha1.BatchPreFailed)
}
func newer(in *Input) { in.Workload.Version, in.Workload.Attempt = "w", 3 }
func again(in *Input) { in.Workload.Attempt = 4 }
func held(in *Input) {
	in.Workload.Suspend, in.Workload.Hold = "1", &v1alpha1.Hold{Attempt: 2}
}
func repairs(in *Input) {
	in.Workload.Suspend, in.Workload.Bypass = "1", &v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: "1", Attempt: 2}
}
func heldAsUnjudged(in *Input) { in.Workload.Hold = &v1alpha1.Hold{Attempt: 2, Unjudged: true} }
func pauseEnded(in *Input) {
	heldAsUnjudged(in)
	in.Workload.HoldState = HoldPauseEnded
}
func heldBefore(in *Input)   { in.Workload.Hold = &v1alpha1.Hold{Attempt: 1, Unjudged: true} }
func frozenByHand(in *Input) { in.Workload.Suspend = "7" }
func onceFailed(n int) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.DefenseCheckFailPods = append(in.ChangeWorkload.Status.DefenseCheckFailPods, summary(n))
	}
}
func onceUnjudged(n int, message string) func(*Input) {
	return func(in *Input) {
		f := summary(n)
		f.Message = message
		in.ChangeWorkload.Status.DefenseCheckFailPods = append(in.ChangeWorkload.Status.DefenseCheckFailPods, f)
	}
}

// timedOut: the release failed because its rollout made no progress.
func timedOut(in *Input) {
	in.ChangeWorkload.Status.Phase = v1alpha1.ReleaseFailed
	in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
		Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonReleaseTimedOut})
}
func orderOpen(in *Input) {
	in.ChangeWorkload.Status.Order = &v1alpha1.Order{OpenedTime: &metav1.Time{Time: t0}}
}

func TestATimeoutOfASuspendedWorkloadNamesTheNextRepair(t *testing.T) {
	const another = "remove its annotation " + v1alpha1.BypassAnnotation + " to release another repair"
	rolledBack := func(in *Input) { repairs(in); in.Workload.Bypass.Kind = v1alpha1.BypassRollback }
	anotherAllowed := func(in *Input) { repairs(in); in.Workload.Bypass.AnotherRepair = true }
	byHand := func(in *Input) { in.Workload.Suspend = "holidays" }
	for name, tc := range map[string]struct {
		suspended func(*Input)
		want      string
	}{
		"a repair":                             {repairs, "the workload stays suspended: " + another},
		"a repair, and another is allowed":     {anotherAllowed, "the workload stays suspended: release a repair"},
		"a rollback, which uses no repair":     {rolledBack, "the workload stays suspended: release a repair"},
		"suspended by a person: no repair yet": {byHand, "the workload stays suspended: release a repair"},
		"not suspended":                        {func(*Input) {}, "0 are not in a batch yet"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(release(2, finished(1, 1), judged(1, "pass"), tc.suspended, after(24*time.Hour)))
			if !strings.HasSuffix(d.Detail, tc.want) {
				t.Errorf("the message is %q, want its end %q", d.Detail, tc.want)
			}
		})
	}
}

func TestTheStateOfAReleaseFollowsFromItsPods(t *testing.T) {
	type want struct {
		Phase   v1alpha1.ReleasePhase
		Reason  string
		Action  Action
		Batches []int
	}
	const (
		running, success, suspend = v1alpha1.ReleaseRunning, v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend
		timedOutReason            = v1alpha1.ReasonReleaseTimedOut
		failed, noNewBatch, start = v1alpha1.ReleaseFailed, v1alpha1.ReleaseNoNewBatch, v1alpha1.ReleaseInit
	)
	for name, tc := range map[string]struct {
		in   Input
		want want
	}{
		"no pod is finished":                                                     {release(2, starting(1)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"a finished pod is claimed":                                              {release(2, finished(1, 1)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"each finished pod is a batch of its own":                                {release(3, finished(1, 2)), want{running, v1alpha1.ReasonJudging, "", []int{1, 1}}},
		"a claimed pod is not claimed again":                                     {release(2, finished(1, 1), judged(1, "")), want{running, v1alpha1.ReasonJudging, "", nil}},
		"no finished pod in time":                                                {release(2, starting(1), after(60*time.Second)), want{noNewBatch, v1alpha1.ReasonRollingOut, "", nil}},
		"10 percent of 5 pods are one":                                           {release(5, percent(10), finished(1, 1)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"40 percent of 5 pods wait for the second":                               {release(5, percent(40), finished(1, 1)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"an incomplete batch is claimed after a time":                            {release(5, percent(40), finished(1, 1), after(61*time.Second)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"a pod that does not stay Ready waits for a full batch":                  {release(100, percent(10), noLongerReady(1, 59*time.Second)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"a pod that does not stay Ready is claimed after a time":                 {release(100, percent(10), noLongerReady(1, 10*time.Minute)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"the last incomplete batch is claimed at the end":                        {release(5, percent(40), finished(1, 5), complete1), want{running, v1alpha1.ReasonJudging, "", []int{2, 2, 1}}},
		"all passed and the rollout is in progress":                              {release(2, finished(1, 1), judged(1, "pass")), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"all passed and complete":                                                {release(1, finished(1, 1), judged(1, "pass"), complete1), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"a replica is not in the cache yet":                                      {release(2, finished(1, 1), judged(1, "pass"), complete1), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"scaled to 0":                                                            {release(0, complete1), want{success, v1alpha1.ReasonNoVerdict, "", nil}},
		"scaled up from 0 after Success":                                         {release(1, finished(1, 1), was(success), complete1), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"scaled to 0 while its first pod is checked":                             {release(0, judged(1, ""), complete1), want{success, v1alpha1.ReasonNoVerdict, "", nil}},
		"scaled to 0, and its pod passes later":                                  {release(0, judged(1, ""), complete1, recorded, person("pass")), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"scaled to 0 while its first pod is held":                                {release(0, judged(1, "done"), noVerdict("Hold"), heldAsUnjudged, complete1), want{success, v1alpha1.ReasonNoVerdict, ActionResume, nil}},
		"scaled up after its first pod was checked":                              {release(0, judged(1, ""), complete1, recorded, scaledTo(1), finished(2, 2)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"scaled up after its first pod was held":                                 {release(0, judged(1, "done"), noVerdict("Hold"), complete1, recorded, recorded, scaledTo(1), finished(2, 2)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"scaled up after its first pod was checked and then unjudged":            {release(0, judged(1, ""), complete1, recorded, unjudgedLater, recorded, scaledTo(1), finished(2, 2)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"scaled up after a deleted pod passed":                                   {release(0, judged(1, "pass"), complete1, recorded, scaledTo(1), finished(2, 2)), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"scaled to 0 and up after it passed unjudged":                            {release(1, finished(1, 1), judged(1, "done"), complete1, recorded, scaledTo(0), recorded, scaledTo(1), finished(2, 2)), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"scaled up from 0 after release-timeout":                                 {release(1, starting(1), was(success), after(48*time.Hour)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"scaled up from 0 after release-timeout, a look later":                   {release(0, complete1, recorded, scaledTo(1), starting(1), after(48*time.Hour), recorded), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"no progress for a day after it was scaled up from 0":                    {release(1, starting(1), judgedSince(48*time.Hour), after(72*time.Hour-1)), want{noNewBatch, v1alpha1.ReasonRollingOut, "", nil}},
		"no progress for release-timeout after it was scaled up from 0":          {release(1, starting(1), judgedSince(48*time.Hour), after(72*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a deleted pod that passed is not required":                              {release(1, judged(1, "pass"), finished(2, 2), judged(2, "pass"), complete1), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"a replica is not in the cache yet, and a node is not Ready":             {release(1, finished(1, 1), judged(1, "pass"), nodeOfFirstNotReady, complete1), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"the pod that replaces it is judged":                                     {release(1, judged(1, "pass"), finished(2, 2), complete1), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"the first fail suspends the workload":                                   {release(3, finished(1, 2), judged(1, "pass"), judged(2, "fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"the existing pods are still judged after a fail":                        {release(3, finished(1, 2), judged(1, "fail"), held), want{suspend, v1alpha1.ReasonCheckFailed, "", []int{1}}},
		"a suspended workload is not held again":                                 {release(1, finished(1, 1), judged(1, "fail"), held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a repair that fails is suspended on its own":                            {release(1, finished(1, 1), judged(1, "fail"), repairs), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a fail holds nothing if blocking is off":                                {release(1, finished(1, 1), judged(1, "fail"), notBlocking), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a late fail of the current release":                                     {release(1, finished(1, 1), judged(1, "unpass"), complete1, was(success)), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a late fail claims no pod that was created after the Success":           {release(2, finished(1, 2), judged(1, "fail"), complete1, was(success)), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"deleting the failed pod does not clear the fail":                        {release(1, judged(1, "fail"), finished(2, 2), judged(2, "pass"), complete1, held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"deleting its ChangePod does not clear the fail":                         {release(1, onceFailed(1), finished(2, 2), judged(2, "pass"), complete1, held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a pass by a person clears the fail":                                     {release(2, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend)), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"a pass by a person ends a complete release":                             {release(1, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend), complete1), want{success, v1alpha1.ReasonAllPodsPassed, ActionResume, nil}},
		"deleting the ChangeWorkload does not clear the fail":                    {release(1, finished(1, 1), judged(1, "pass"), held, complete1), want{suspend, v1alpha1.ReasonFailedCheckLost, "", nil}},
		"the success of a repair ends the suspension":                            {release(1, finished(1, 1), judged(1, "pass"), repairs, complete1), want{success, v1alpha1.ReasonAllPodsPassed, ActionResume, nil}},
		"a suspension by a person stays":                                         {release(1, finished(1, 1), judged(1, "pass"), frozenByHand, complete1), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"no progress until release-timeout":                                      {release(2, finished(1, 1), judged(1, "pass"), after(24*time.Hour-1)), want{noNewBatch, v1alpha1.ReasonRollingOut, "", nil}},
		"no progress for release-timeout":                                        {release(2, finished(1, 1), judged(1, "pass"), after(24*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a complete rollout whose pods are not available for release-timeout":    {release(1, finished(1, 1), judged(1, "pass"), after(24*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a repair times out: the suspension stays":                               {release(2, finished(1, 1), judged(1, "pass"), repairs, after(24*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a repair that timed out stays so: the suspension stays":                 {release(2, finished(1, 1), judged(1, "pass"), repairs, timedOut, after(25*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a repair that timed out completes without its pods: the suspension too": {release(2, finished(1, 1), judged(1, "pass"), repairs, timedOut, complete1, after(25*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a release that timed out makes progress":                                {release(2, finished(1, 2), judged(1, "pass"), repairs, timedOut, after(25*time.Hour)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"a release that timed out completes, and all its pods passed":            {release(1, finished(1, 1), judged(1, "pass"), repairs, timedOut, complete1, after(25*time.Hour)), want{success, v1alpha1.ReasonAllPodsPassed, ActionResume, nil}},
		"a release that timed out fails late":                                    {release(2, finished(1, 1), judged(1, "fail"), timedOut, after(25*time.Hour)), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a release that timed out is replaced":                                   {release(2, finished(1, 1), judged(1, "pass"), timedOut, newer, after(25*time.Hour)), want{failed, v1alpha1.ReasonSuperseded, "", nil}},
		"an unjudged pod is no timeout":                                          {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldAsUnjudged, after(25*time.Hour)), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"an unjudged pod does not pass because of the timeout":                   {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), timedOut, heldAsUnjudged, after(25*time.Hour)), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"a person passes a pod after a hold longer than release-timeout":         {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldAsUnjudged, after(25*time.Hour)), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"the same, the decision after the resumption":                            {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldAsUnjudged, after(25*time.Hour), recorded, func(in *Input) { in.Workload.Hold = nil }), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"the same, the status does not say yet that the hold ended":              {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldCondition("True", time.Hour), after(25*time.Hour)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"no batch for wait-threshold after the end of a hold":                    {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldCondition("False", 25*time.Hour), after(25*time.Hour+60*time.Second)), want{noNewBatch, v1alpha1.ReasonRollingOut, "", nil}},
		"no batch before wait-threshold after the end of a hold":                 {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldCondition("False", 25*time.Hour), after(25*time.Hour+59*time.Second)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"no progress until release-timeout after the end of a hold":              {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldCondition("False", 25*time.Hour), after(49*time.Hour-1)), want{noNewBatch, v1alpha1.ReasonRollingOut, "", nil}},
		"no progress for release-timeout after the end of a hold":                {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), heldCondition("False", 25*time.Hour), after(49*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a person overrules a fail after release-timeout":                        {release(2, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend), after(25*time.Hour)), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"an order that is accepted after a hold longer than release-timeout":     {release(2, starting(1), withServer, orderOpen, noVerdict("Hold"), heldAsUnjudged, after(25*time.Hour)), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"the hold of an earlier release is no hold of this one":                  {release(2, finished(1, 1), judged(1, "pass"), func(in *Input) { in.Workload.Hold = &v1alpha1.Hold{Attempt: 1, Unjudged: true} }, after(24*time.Hour)), want{failed, timedOutReason, ActionResume, nil}},
		"traffic that is held until it is judged stops no rollout":               {release(2, untilJudged, starting(1), after(24*time.Hour)), want{failed, timedOutReason, "", nil}},
		"a pod that waits for its verdict is no timeout":                         {release(2, finished(1, 1), judged(1, ""), after(25*time.Hour)), want{running, v1alpha1.ReasonJudging, "", nil}},
		"unjudged, policy Pass":                                                  {release(1, finished(1, 1), judged(1, "done"), complete1), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"unjudged, policy Hold":                                                  {release(1, finished(1, 1), judged(1, "done"), complete1, noVerdict("Hold")), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"unjudged, policy Hold, during the rollout":                              {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold")), want{running, v1alpha1.ReasonHeldUnjudged, ActionHold, nil}},
		"an unjudged rollout that is held is not held again":                     {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldAsUnjudged), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"it is held again if it was paused before and the pause ended":           {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), pauseEnded), want{running, v1alpha1.ReasonHeldUnjudged, ActionHold, nil}},
		"the same, while a later pod waits for its verdict":                      {release(3, finished(1, 2), judged(1, "done"), judged(2, ""), noVerdict("Hold"), pauseEnded), want{running, v1alpha1.ReasonJudging, ActionHold, nil}},
		"the same, its order is not accepted in time":                            {release(2, starting(1), withServer, asked, noVerdict("Hold"), pauseEnded, after(120*time.Second)), want{start, v1alpha1.ReasonOrderPending, ActionHold, nil}},
		"the same, a person passed the pod":                                      {release(2, finished(1, 1), judged(1, "done"), person("pass"), noVerdict("Hold"), pauseEnded), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"the same, a person failed the pod":                                      {release(2, finished(1, 1), judged(1, "done"), person("fail"), noVerdict("Hold"), pauseEnded), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"the same, blocking is off":                                              {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), pauseEnded, notBlocking), want{running, v1alpha1.ReasonHeldUnjudged, ActionResume, nil}},
		"an unjudged rollout that was resumed by hand is not held again":         {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldAsUnjudged, func(in *Input) { in.Workload.HoldState = HoldResumed }), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"an unjudged rollout is not held if blocking is off":                     {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), notBlocking), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"an unjudged rollout that completes while it is held stays held":         {release(1, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldAsUnjudged, complete1), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"the same, its order is not accepted":                                    {release(1, finished(1, 1), withServer, asked, noVerdict("Hold"), heldAsUnjudged, complete1, after(120*time.Second)), want{start, v1alpha1.ReasonOrderPending, "", []int{1}}},
		"the same, its hold is that of an earlier attempt":                       {release(1, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldBefore, complete1), want{running, v1alpha1.ReasonHeldUnjudged, ActionResume, nil}},
		"the same, blocking is turned off":                                       {release(1, finished(1, 1), judged(1, "done"), noVerdict("Hold"), heldAsUnjudged, complete1, notBlocking), want{running, v1alpha1.ReasonHeldUnjudged, ActionResume, nil}},
		"a held rollout is resumed when blocking is turned off":                  {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), notBlocking, heldAsUnjudged), want{running, v1alpha1.ReasonHeldUnjudged, ActionResume, nil}},
		"a late pass resumes a held rollout":                                     {release(2, finished(1, 1), judged(1, "pass"), noVerdict("Hold"), heldAsUnjudged), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"policy Pass resumes a held rollout":                                     {release(2, finished(1, 1), judged(1, "done"), heldAsUnjudged), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"a late fail suspends a held rollout":                                    {release(2, finished(1, 1), judged(1, "fail"), heldAsUnjudged), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a late fail of a held, frozen rollout suspends it":                      {release(2, finished(1, 1), judged(1, "fail"), heldAsUnjudged, frozenByHand), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a late fail resumes a held rollout if blocking is off":                  {release(2, finished(1, 1), judged(1, "fail"), heldAsUnjudged, notBlocking), want{suspend, v1alpha1.ReasonCheckFailed, ActionResume, nil}},
		"an overruled fail beside an unjudged pod":                               {release(3, finished(1, 2), onceFailed(1), judged(1, "fail"), person("pass"), judged(2, "done"), noVerdict("Hold"), held, was(suspend)), want{running, v1alpha1.ReasonHeldUnjudged, ActionHold, nil}},
		"a hold of an earlier release whose end was missed":                      {release(2, starting(1), func(in *Input) { in.Workload.Hold = &v1alpha1.Hold{Attempt: 1, Unjudged: true} }), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"a release that failed resumes its held rollout":                         {release(2, starting(1), heldAsUnjudged, was(failed)), want{failed, "", ActionResume, nil}},
		"a frozen workload whose rollout is held, without its ChangeWorkload":    {release(2, finished(1, 1), judged(1, "pass"), heldAsUnjudged, frozenByHand), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"unjudged, policy Fail":                                                  {release(1, finished(1, 1), judged(1, "done"), complete1, noVerdict("Fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a pass that the server contradicts, by default":                         {release(1, finished(1, 1), judged(1, "contradicted"), complete1), want{running, v1alpha1.ReasonHeldUnjudged, "", nil}},
		"a pass that the server contradicts, policy Pass":                        {release(1, finished(1, 1), judged(1, "contradicted"), complete1, contradictedPolicy("Pass")), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"a pass that the server contradicts, policy Fail":                        {release(1, finished(1, 1), judged(1, "contradicted"), complete1, contradictedPolicy("Fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionSuspend, nil}},
		"a pod created after Success is not judged":                              {release(2, finished(1, 2), judged(1, "pass"), was(success)), want{success, "", "", nil}},
		"a newer template supersedes the release":                                {release(1, finished(1, 1), newer, was(running)), want{failed, v1alpha1.ReasonSuperseded, "", nil}},
		"the same template again supersedes the release":                         {release(1, finished(1, 1), again, was(running)), want{failed, v1alpha1.ReasonSuperseded, "", nil}},
		"a late fail of a replaced release":                                      {release(1, judged(1, "fail"), newer, was(success)), want{failed, v1alpha1.ReasonCheckFailed, "", nil}},
		"a late fail of a superseded release":                                    {release(1, newer, was(running), recorded, judged(1, "fail")), want{failed, v1alpha1.ReasonCheckFailed, "", nil}},
		"a fail of an old release does not change the workload":                  {release(1, judged(1, "fail"), newer, was(suspend)), want{suspend, "", "", nil}},
		"with a server the order is opened first":                                {release(1, starting(1), withServer), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"the order is open":                                                      {release(1, starting(1), withServer, orderOpen), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"the order is not accepted in time":                                      {release(1, starting(1), withServer, asked, after(120*time.Second)), want{failed, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"the order is not accepted, just after a restart":                        {release(1, starting(1), withServer, asked, after(time.Hour), decidingSince(time.Hour)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"the order is not accepted, some time after a restart":                   {release(1, starting(1), withServer, asked, after(time.Hour), decidingSince(time.Hour-15*time.Second)), want{failed, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"the order is not accepted in time, policy Hold":                         {release(1, starting(1), withServer, asked, after(120*time.Second), noVerdict("Hold")), want{start, v1alpha1.ReasonOrderPending, ActionHold, nil}},
		"the order is not accepted in time, policy Fail":                         {release(1, starting(1), withServer, asked, after(120*time.Second), noVerdict("Fail")), want{suspend, v1alpha1.ReasonOrderNotAccepted, ActionSuspend, nil}},
		"claiming the failed pod again does not clear the fail":                  {release(1, onceFailed(1), finished(1, 1), judged(1, ""), held, was(suspend)), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a pass by the server does not clear the fail":                           {release(1, onceFailed(1), finished(1, 1), judged(1, "pass"), held, was(suspend), complete1), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a late pass clears an unjudged fail of an earlier version":              {release(1, onceUnjudged(1, "nobody judged"), finished(1, 1), judged(1, "pass"), held, was(suspend), complete1), want{success, v1alpha1.ReasonAllPodsPassed, ActionResume, nil}},
		"a late pass clears an unjudged fail":                                    {release(1, onceUnjudged(1, v1alpha1.UnjudgedMessage), finished(1, 1), judged(1, "pass"), held, was(suspend), complete1), want{success, v1alpha1.ReasonAllPodsPassed, ActionResume, nil}},
		"a stricter policy does not change a release that ended":                 {release(1, finished(1, 1), judged(1, "done"), complete1, was(success), noVerdict("Fail")), want{success, "", "", nil}},
		"a stale workload":                                                       {release(1, starting(1), behind, was(running)), want{running, "", "", nil}},
		"a stale workload, of a new release":                                     {release(1, starting(1), behind), want{start, v1alpha1.ReasonReleasePending, "", nil}},
		"deleting the ChangeWorkload and a stale workload do not clear the fail": {release(1, finished(1, 1), judged(1, "pass"), behind, recorded, current, held, complete1), want{suspend, v1alpha1.ReasonFailedCheckLost, "", nil}},
		"a workload whose annotations were removed":                              {release(1, starting(1), unstamped, was(running)), want{running, "", "", nil}},
		"an order whose call waits for its turn has no deadline":                 {release(1, starting(1), withServer, inQueue, after(24*time.Hour)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"the order is not opened within submit-timeout":                          {release(1, starting(1), withServer, inQueue, woken(time.Hour), after(70*time.Minute)), want{failed, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"the order may be opened until submit-timeout":                           {release(1, starting(1), withServer, inQueue, woken(time.Hour), after(69*time.Minute)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"order-timeout does not begin before the first call":                     {release(1, starting(1), withServer, after(time.Hour)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"order-timeout begins when the server is configured":                     {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonNoServerConfigured, t0), after(time.Hour), was(running)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"an order that is not accepted stays so":                                 {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), noVerdict("Fail"), held, was(suspend)), want{suspend, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"an order that is not accepted, after policy Fail":                       {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), held, was(suspend), recorded), want{failed, v1alpha1.ReasonOrderNotAccepted, ActionResume, nil}},
		"an order that is not accepted, after policy Fail, and a fail":           {release(1, finished(1, 1), judged(1, "fail"), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), held, was(failed)), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"an order that is not accepted, after policy Fail, suspended by hand":    {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), frozenByHand, was(failed)), want{failed, "", "", nil}},
		"an order that is not accepted, after policy Fail, resumed":              {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), was(failed)), want{failed, "", "", nil}},
		"verdicts of people need no order":                                       {release(1, finished(1, 1), judged(1, "done"), person("pass"), withServer, asked, after(time.Hour), complete1, noVerdict("Hold")), want{success, v1alpha1.ReasonAllPodsPassed, "", nil}},
		"an unjudged pod needs an order":                                         {release(1, finished(1, 1), judged(1, "done"), withServer, asked, complete1), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"the baseline is not judged":                                             {release(1, finished(1, 1), func(in *Input) { in.ChangeWorkload.Spec.Attempt = 0 }), want{success, v1alpha1.ReasonBaseline, "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			if !got.Deadline.IsZero() && !got.Deadline.After(tc.in.Now) {
				t.Errorf("the deadline %s has passed: it would be reconciled without end", got.Deadline.Sub(t0))
			}
			var sizes []int
			for _, b := range got.Batches {
				sizes = append(sizes, len(b))
			}
			if diff := cmp.Diff(tc.want, want{got.Phase, got.Reason, got.Action, sizes}); diff != "" {
				t.Error(diff)
			}
			everyConditionHasAReason(t, tc.in, got)
		})
	}
}

func TestTheMessageSaysWhyTheOrderIsNotAccepted(t *testing.T) {
	rejected := func(in *Input) {
		asked(in)
		in.ChangeWorkload.Status.Order.Error = &v1alpha1.ServerError{Reason: v1alpha1.ReasonServerRejected, Message: "code 102"}
	}
	misconfigured := func(in *Input) {
		inQueue(in)
		in.ChangeWorkload.Status.Order = &v1alpha1.Order{Error: &v1alpha1.ServerError{Reason: v1alpha1.ReasonServerUnreachable, Message: "base-url: no host"}}
	}
	const (
		notAccepted = "the server did not accept the order within 2m0s (order-timeout)"
		notCalled   = "the server was not called to open the order within 10m0s (submit-timeout): it may be that the Broker or function submit is unreachable, that the circuit breaker is open, or that ConfigMap config-altershield is invalid"
	)
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"the server rejected it":         {release(1, starting(1), withServer, rejected, after(time.Hour)), notAccepted + ": code 102"},
		"the server has not answered":    {release(1, starting(1), withServer, asked, after(time.Hour)), notAccepted},
		"the server was not called":      {release(1, starting(1), withServer, inQueue, woken(0), after(time.Hour)), notCalled},
		"its configuration is invalid":   {release(1, starting(1), withServer, misconfigured, woken(0), after(time.Hour)), "the server was not called to open the order within 10m0s (submit-timeout): base-url: no host"},
		"invalid, before submit-timeout": {release(1, starting(1), withServer, misconfigured, woken(0), after(5*time.Minute)), "the server has not accepted the order yet"},
		"rejected, policy Fail":          {release(1, starting(1), withServer, rejected, after(time.Hour), noVerdict("Fail")), notAccepted + ": code 102"},
		"rejected, policy Hold":          {release(1, starting(1), withServer, rejected, after(time.Hour), noVerdict("Hold")), notAccepted + ": code 102"},
		"not called, policy Hold":        {release(1, starting(1), withServer, inQueue, woken(0), after(time.Hour), noVerdict("Hold")), notCalled},
		"not called yet, policy Hold":    {release(1, starting(1), withServer, inQueue, woken(0), after(time.Minute), noVerdict("Hold")), "the server has not accepted the order yet"},
		"rejected, before order-timeout": {release(1, starting(1), withServer, rejected, after(time.Minute)), "the server has not accepted the order yet"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			for _, kind := range []apis.ConditionType{apis.ConditionSucceeded, v1alpha1.ReleaseOrderAccepted} {
				if diff := cmp.Diff(tc.want, derive(tc.in, d).Status.GetCondition(kind).Message); diff != "" {
					t.Errorf("condition %s: %s", kind, diff)
				}
			}
		})
	}
}

// A new process has not woken function submit yet, and extends deadlines.
func TestARolloutThatIsHeldWithoutAnAcceptedOrderStaysHeldAcrossARestart(t *testing.T) {
	for name, in := range map[string]Input{
		"the server was not called":    release(1, starting(1), withServer, inQueue, woken(0), after(time.Hour), noVerdict("Hold")),
		"the server did not accept it": release(1, starting(1), withServer, asked, after(time.Hour), noVerdict("Hold")),
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(in)
			if d.Action != ActionHold {
				t.Fatalf("action %q before the restart", d.Action)
			}
			in.ChangeWorkload = derive(in, d)
			heldAsUnjudged(&in)
			in.StepWokenSince, in.DecidingSince = time.Time{}, in.Now
			if got := Decide(in); got.Action != ActionNone || !got.Order.WakeSubmit || got.Detail != d.Detail {
				t.Errorf("action %q, function submit is woken %v, message %q after the restart", got.Action, got.Order.WakeSubmit, got.Detail)
			}
			opened := in
			orderOpen(&opened)
			if got := Decide(opened); got.Action != ActionResume {
				t.Errorf("action %q after the order was opened", got.Action)
			}
		})
	}
}

// everyConditionHasAReason checks the derived status of a decision. A decision may
// keep the reason of Succeeded, which most inputs do not have; Ready and Stalled copy it.
func everyConditionHasAReason(t *testing.T, in Input, d Decision) {
	t.Helper()
	for _, c := range derive(in, d).Status.Conditions {
		kept := d.Reason == "" && slices.Contains([]apis.ConditionType{apis.ConditionSucceeded, v1alpha1.ReleaseReady, v1alpha1.ReleaseStalled}, c.Type)
		if c.Reason == "" && !kept {
			t.Errorf("condition %s is %s without a reason", c.Type, c.Status)
		}
	}
}

// calling sets the submission and the verdicts of the newest batch.
func calling(stage v1alpha1.Stage, call v1alpha1.Submission, verdicts ...v1alpha1.StageVerdict) func(*Input) {
	return func(in *Input) {
		call.Stage = stage
		status := &in.ChangePods[len(in.ChangePods)-1].Status
		status.Submissions, status.Verdicts = []v1alpha1.Submission{call}, verdicts
	}
}

func TestPendingCallsLimitTheNewBatches(t *testing.T) {
	answered := &metav1.MicroTime{Time: t0}
	pass := v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "pass"}
	for name, tc := range map[string]struct {
		// first changes the first batch; the others wait for their first call.
		first func(*Input)
		want  int
	}{
		"all wait for their first call": {func(*Input) {}, 0},
		"one is being submitted":        {calling(v1alpha1.StagePre, v1alpha1.Submission{}), 0},
		"one waits for its PRE verdict": {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}), 1},
		"the call of one failed":        {calling(v1alpha1.StagePre, v1alpha1.Submission{Error: &v1alpha1.ServerError{Reason: "Unreachable"}}), 1},
		"one waits for its second call": {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}, pass), 0},
		"one was submitted for POST":    {calling(v1alpha1.StagePost, v1alpha1.Submission{}, pass), 1},
		"one failed in PRE":             {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}, v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "fail"}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(200, finished(1, 200), withServer, orderOpen, judged(1, ""))
			tc.first(&in)
			for n := 2; n <= maxPendingCalls; n++ {
				judged(n, "")(&in)
			}
			if got := len(Decide(in).Batches); got != tc.want {
				t.Errorf("%d batches, want %d", got, tc.want)
			}
		})
	}
	if got := len(Decide(release(200, finished(1, 200), withServer, orderOpen)).Batches); got != maxPendingCalls {
		t.Errorf("%d batches at first, want %d", got, maxPendingCalls)
	}
	if got := len(Decide(release(200, finished(1, 200))).Batches); got != 200 {
		t.Errorf("%d batches without a server, want 200", got)
	}
	in := release(200, finished(1, 200), withServer, orderOpen, percent(10))
	if got := len(Decide(in).Batches); got != 10 {
		t.Errorf("%d batches of 10 %%, want 10", got)
	}
}

func TestAStaleCacheNeverClaimsAPodTwice(t *testing.T) {
	// The ChangePod of pod 1 exists, but is not in the cache yet.
	in := release(2, finished(1, 1))
	if got := v1alpha1.ChangePodName("a--x--v", nextIndex(in.ChangePods)); got != "a--x--v--x--1" {
		t.Errorf("the name %s would not collide", got)
	}
}

func TestABatchHasTheTotalAndIsTheLastOrNot(t *testing.T) {
	type is struct {
		N, Total int
		Last     bool
	}
	for name, tc := range map[string]struct {
		in   Input
		want []is
	}{
		"one of ten":                                     {release(10, finished(1, 1)), []is{{1, 10, false}}},
		"the last of ten":                                {release(2, finished(1, 2), judged(1, "pass")), []is{{2, 2, true}}},
		"two at once":                                    {release(3, finished(1, 2)), []is{{1, 3, false}, {2, 3, false}}},
		"all at once":                                    {release(2, finished(1, 2)), []is{{1, 2, false}, {2, 2, true}}},
		"a full batch of 40 percent":                     {release(10, percent(40), finished(1, 4)), []is{{1, 3, false}}},
		"the last incomplete batch":                      {release(10, percent(40), finished(1, 10), complete1), []is{{1, 3, false}, {2, 3, false}, {3, 3, true}}},
		"scaling up adds batches":                        {release(12, finished(1, 2), judged(1, "pass")), []is{{2, 12, false}}},
		"a surplus pod that is not Ready":                {release(1, finished(1, 1), starting(2)), []is{{1, 2, false}}},
		"the pod that replaces one comes after the last": {release(2, judged(1, "pass"), judged(2, "pass"), finished(2, 3)), []is{{3, 3, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []is
			for _, p := range positions(tc.in, Decide(tc.in).Batches) {
				got = append(got, is{p.n, p.total, p.last})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The autoscaler of a Knative Service deletes pods that nothing calls.
func TestAReleaseThatScalesToZero(t *testing.T) {
	scales := func(in *Input) { in.Workload.KnativeService, in.Workload.Updated = true, true }
	later := func(in *Input) { in.Now = t0.Add(48 * time.Hour) }
	rollingOut := unavailable(1)
	startsAfter := func(d time.Duration) func(*Input) {
		return func(in *Input) { in.Pods = append(in.Pods, Pod{PodSummary: summary(1), Created: t0.Add(d)}) }
	}
	for name, tc := range map[string]struct {
		in     Input
		phase  v1alpha1.ReleasePhase
		reason string
	}{
		"waits without a pod":                      {release(1, scales), v1alpha1.ReleaseRunning, v1alpha1.ReasonScaledToZero},
		"waits for days":                           {release(1, scales, later), v1alpha1.ReleaseRunning, v1alpha1.ReasonScaledToZero},
		"times out if the Revision is not Ready":   {release(1, scales, rollingOut, later), v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut},
		"goes on when a pod starts after days":     {release(1, scales, later, startsAfter(48*time.Hour)), v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut},
		"times out if that pod is not Ready":       {release(1, scales, later, startsAfter(24*time.Hour)), v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut},
		"its pod started and waits for a node":     {release(1, scales, rollingOut, later, startsAfter(48*time.Hour)), v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut},
		"it waits for a node for a day":            {release(1, scales, rollingOut, later, startsAfter(24*time.Hour)), v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut},
		"a second pod while the first is stuck":    {release(1, scales, rollingOut, later, startsAfter(48*time.Hour), startsAfter(24*time.Hour)), v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut},
		"its pods never became Ready":              {release(1, scales, rollingOut, later, startsAfter(0)), v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut},
		"is judged when a pod starts":              {release(1, scales, finished(1, 1)), v1alpha1.ReleaseRunning, v1alpha1.ReasonJudging},
		"succeeds with a pod":                      {release(1, scales, finished(1, 1), judged(1, "pass")), v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed},
		"succeeds if the pod that passed is gone":  {release(1, scales, judged(1, "pass")), v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed},
		"waits for the verdict on a pod that left": {release(1, scales, judged(1, "")), v1alpha1.ReleaseRunning, v1alpha1.ReasonJudging},
		"fails if the pod that failed is gone":     {release(1, scales, judged(1, "fail")), v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed},
		"judges each pod that exists":              {release(2, scales, judged(1, "pass"), finished(2, 2)), v1alpha1.ReleaseRunning, v1alpha1.ReasonJudging},
		"another kind waits for a pod":             {release(1, judged(1, "pass")), v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Decide(tc.in); d.Phase != tc.phase || d.Reason != tc.reason {
				t.Errorf("%s %s (%s), want %s %s", d.Phase, d.Reason, d.Detail, tc.phase, tc.reason)
			}
		})
	}
}
