package changeworkload

import (
	"fmt"
	"strconv"
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

// release is a release of n pods, seen after a time; the options say what happened.
func release(replicas int32, options ...func(*Input)) Input {
	in := Input{
		Now: t0, Settings: settings.Default(),
		ChangeWorkload: &v1alpha1.ChangeWorkload{
			ObjectMeta: metav1.ObjectMeta{Name: "a--x--v", CreationTimestamp: metav1.NewTime(t0)},
			Spec:       v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: 2},
		},
		Workload: Workload{Version: "v", Attempt: 2, Replicas: replicas, Processed: true},
	}
	for _, o := range options {
		o(&in)
	}
	return in
}

func summary(n int) v1alpha1.PodSummary {
	return v1alpha1.PodSummary{Pod: fmt.Sprintf("p%d", n), UID: types.UID(strconv.Itoa(n))}
}

// finished adds pods n..m that are there and finished.
func finished(n, m int) func(*Input) {
	return func(in *Input) {
		for i := n; i <= m; i++ {
			in.Pods = append(in.Pods, Pod{PodSummary: summary(i), Finished: true, ReadySince: t0.Add(time.Duration(i) * time.Second)})
		}
	}
}

// starting adds a pod that is there and not finished.
func starting(n int) func(*Input) {
	return func(in *Input) { in.Pods = append(in.Pods, Pod{PodSummary: summary(n)}) }
}

// judged adds a ChangePod of one pod with a POST verdict; "" leaves it pending
// and "done" ends it without a verdict.
func judged(n int, word string) func(*Input) {
	return func(in *Input) {
		c := &v1alpha1.ChangePod{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangePodName("a--x--v", n), CreationTimestamp: metav1.NewTime(t0)},
			Spec:       v1alpha1.ChangePodSpec{PodInfos: []v1alpha1.PodSummary{summary(n)}},
		}
		switch word {
		case "":
		case "done":
			c.Status.Phase, c.Status.Message = v1alpha1.PodExecuteDone, string(v1alpha1.PodPreFailed)
		default:
			c.Status.Phase = v1alpha1.PodExecuteDone
			c.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: word, Message: "because"}}
		}
		in.ChangePods = append(in.ChangePods, c)
	}
}

// person adds a word of a person to the newest ChangePod.
func person(word string) func(*Input) {
	return func(in *Input) {
		c := in.ChangePods[len(in.ChangePods)-1]
		c.Status.PodResults = []v1alpha1.PodSummary{{Pod: c.Spec.PodInfos[0].Pod, Verdict: word}}
	}
}

// ordered says since when, or with what end, the order was asked for.
func ordered(status corev1.ConditionStatus, reason string, since time.Time) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.Conditions = append(in.ChangeWorkload.Status.Conditions, apis.Condition{
			Type: v1alpha1.WorkloadOrderAccepted, Status: status, Reason: reason,
			LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(since)},
		})
	}
}
func asked(in *Input) {
	ordered(corev1.ConditionUnknown, v1alpha1.ReasonOrderPending, t0)(in)
}
func behind(in *Input)    { in.Workload.Version, in.Workload.Attempt = "u", 1 }
func current(in *Input)   { in.Workload.Version, in.Workload.Attempt = "v", 2 }
func unstamped(in *Input) { in.Workload.Version, in.Workload.Attempt = "", -1 }

func complete1(in *Input)   { in.Workload.Complete = true }
func withServer(in *Input)  { in.ServerConfigured = true }
func notBlocking(in *Input) { in.Settings.Blocking = false }
func noVerdict(p v1alpha1.NoVerdictPolicy) func(*Input) {
	return func(in *Input) { in.Settings.NoVerdict = p }
}
func after(d time.Duration) func(*Input) { return func(in *Input) { in.Now = t0.Add(d) } }
func up(d time.Duration) func(*Input)    { return func(in *Input) { in.Up = t0.Add(d) } }
func percent(n int32) func(*Input)       { return func(in *Input) { in.Settings.BatchPercent = n } }
func was(p v1alpha1.WorkloadPhase) func(*Input) {
	return func(in *Input) { in.ChangeWorkload.Status.Phase = p }
}
func newer(in *Input) { in.Workload.Version, in.Workload.Attempt = "w", 3 }
func again(in *Input) { in.Workload.Attempt = 4 }
func held(in *Input) {
	in.Workload.Suspend, in.Workload.Hold = "1", &v1alpha1.Hold{Attempt: 2}
}
func repairs(in *Input) {
	in.Workload.Suspend, in.Workload.Bypass = "1", &v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: "1", Attempt: 2}
}
func frozenByHand(in *Input) { in.Workload.Suspend = "7" }
func onceFailed(n int) func(*Input) {
	return func(in *Input) {
		in.ChangeWorkload.Status.DefenseCheckFailPods = append(in.ChangeWorkload.Status.DefenseCheckFailPods, summary(n))
	}
}
func onceUnjudged(n int) func(*Input) {
	return func(in *Input) {
		f := summary(n)
		f.Message = unjudgedMessage
		in.ChangeWorkload.Status.DefenseCheckFailPods = append(in.ChangeWorkload.Status.DefenseCheckFailPods, f)
	}
}
func orderOpen(in *Input) {
	in.ChangeWorkload.Status.Order = &v1alpha1.Order{OpenedTime: &metav1.Time{Time: t0}}
}

func TestTheStateOfAReleaseFollowsFromItsPods(t *testing.T) {
	type want struct {
		Phase   v1alpha1.WorkloadPhase
		Reason  string
		Action  Action
		Batches []int
	}
	const (
		running, success, suspend = v1alpha1.WorkloadRunning, v1alpha1.WorkloadSuccess, v1alpha1.WorkloadSuspend
		failed, timeOut, start    = v1alpha1.WorkloadFailed, v1alpha1.WorkloadTimeOutPre, v1alpha1.WorkloadInit
	)
	for name, tc := range map[string]struct {
		in   Input
		want want
	}{
		"a release begins":                                     {release(2, starting(1)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"a finished pod goes before the judge":                 {release(2, finished(1, 1)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"each of several is a batch of its own":                {release(3, finished(1, 2)), want{running, v1alpha1.ReasonJudging, "", []int{1, 1}}},
		"a pod is claimed once":                                {release(2, finished(1, 1), judged(1, "")), want{running, v1alpha1.ReasonJudging, "", nil}},
		"no finished pod in time":                              {release(2, starting(1), after(60*time.Second)), want{timeOut, v1alpha1.ReasonRollingOut, "", nil}},
		"10 per cent of 5 is one":                              {release(5, percent(10), finished(1, 1)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"40 per cent of 5 wait for the second":                 {release(5, percent(40), finished(1, 1)), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"a batch that is not full in time goes as it is":       {release(5, percent(40), finished(1, 1), after(61*time.Second)), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"what is left over at the end goes at once":            {release(5, percent(40), finished(1, 5), complete1), want{running, v1alpha1.ReasonJudging, "", []int{2, 2, 1}}},
		"all passed and the roll-out goes on":                  {release(2, finished(1, 1), judged(1, "pass")), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"all passed and complete":                              {release(1, finished(1, 1), judged(1, "pass"), complete1), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"a replica that the cache has not seen is missing":     {release(2, finished(1, 1), judged(1, "pass"), complete1), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"scaled to nothing":                                    {release(0, complete1), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"scaled up from nothing after that":                    {release(1, finished(1, 1), was(success), complete1), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"a pod that passed and went is not missed":             {release(1, judged(1, "pass"), finished(2, 2), judged(2, "pass"), complete1), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"what replaces it is judged":                           {release(1, judged(1, "pass"), finished(2, 2), complete1), want{running, v1alpha1.ReasonJudging, "", []int{1}}},
		"the first fail holds":                                 {release(3, finished(1, 2), judged(1, "pass"), judged(2, "fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionHold, nil}},
		"the judge goes on with the pods that are there":       {release(3, finished(1, 2), judged(1, "fail"), held), want{suspend, v1alpha1.ReasonCheckFailed, "", []int{1}}},
		"a hold is not made twice":                             {release(1, finished(1, 1), judged(1, "fail"), held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a repair that fails is a suspension of its own":       {release(1, finished(1, 1), judged(1, "fail"), repairs), want{suspend, v1alpha1.ReasonCheckFailed, ActionHold, nil}},
		"blocking is off":                                      {release(1, finished(1, 1), judged(1, "fail"), notBlocking), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"a fail after success":                                 {release(1, finished(1, 1), judged(1, "unpass"), complete1, was(success)), want{suspend, v1alpha1.ReasonCheckFailed, ActionHold, nil}},
		"deleting the pod that failed clears nothing":          {release(1, judged(1, "fail"), finished(2, 2), judged(2, "pass"), complete1, held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"nor does deleting its ChangePod":                      {release(1, onceFailed(1), finished(2, 2), judged(2, "pass"), complete1, held), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"an explicit pass does":                                {release(2, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend)), want{running, v1alpha1.ReasonRollingOut, ActionResume, nil}},
		"and ends a release that is complete":                  {release(1, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend), complete1), want{success, v1alpha1.ReasonAllPassed, ActionResume, nil}},
		"nor does deleting the ChangeWorkload":                 {release(1, finished(1, 1), judged(1, "pass"), held, complete1), want{suspend, v1alpha1.ReasonCheckLost, "", nil}},
		"the success of the repair ends the suspension":        {release(1, finished(1, 1), judged(1, "pass"), repairs, complete1), want{success, v1alpha1.ReasonAllPassed, ActionResume, nil}},
		"a suspension made by hand stays":                      {release(1, finished(1, 1), judged(1, "pass"), frozenByHand, complete1), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"nobody judged and the policy is Pass":                 {release(1, finished(1, 1), judged(1, "done"), complete1), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"nobody judged and the policy is Hold":                 {release(1, finished(1, 1), judged(1, "done"), complete1, noVerdict("Hold")), want{running, v1alpha1.ReasonUnjudgedHold, "", nil}},
		"nobody judged and the policy is Fail":                 {release(1, finished(1, 1), judged(1, "done"), complete1, noVerdict("Fail")), want{suspend, v1alpha1.ReasonCheckFailed, ActionHold, nil}},
		"a pod that comes after success is not judged":         {release(2, finished(1, 2), judged(1, "pass"), was(success)), want{success, "", "", nil}},
		"a newer template supersedes":                          {release(1, finished(1, 1), newer, was(running)), want{failed, v1alpha1.ReasonSuperseded, "", nil}},
		"the same template again supersedes":                   {release(1, finished(1, 1), again, was(running)), want{failed, v1alpha1.ReasonSuperseded, "", nil}},
		"a success that was replaced and failed later is none": {release(1, judged(1, "fail"), newer, was(success)), want{failed, v1alpha1.ReasonCheckFailed, "", nil}},
		"a fail of an old version leaves the workload alone":   {release(1, judged(1, "fail"), newer, was(suspend)), want{suspend, "", "", nil}},
		"with a server the order comes first":                  {release(1, starting(1), withServer), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"an order that is open":                                {release(1, starting(1), withServer, orderOpen), want{running, v1alpha1.ReasonRollingOut, "", nil}},
		"an order that is not taken in time":                   {release(1, starting(1), withServer, asked, after(120*time.Second)), want{failed, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"an order that was not taken while we were away":       {release(1, starting(1), withServer, asked, after(time.Hour), up(time.Hour)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"an order that is not taken after we were away":        {release(1, starting(1), withServer, asked, after(time.Hour), up(time.Hour-15*time.Second)), want{failed, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"an order that is not taken in time, policy Hold":      {release(1, starting(1), withServer, asked, after(120*time.Second), noVerdict("Hold")), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"an order that is not taken in time, policy Fail":      {release(1, starting(1), withServer, asked, after(120*time.Second), noVerdict("Fail")), want{suspend, v1alpha1.ReasonOrderNotAccepted, ActionHold, nil}},
		"claiming the pod anew clears no fail":                 {release(1, onceFailed(1), finished(1, 1), judged(1, ""), held, was(suspend)), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"nor does the judge that sees it anew":                 {release(1, onceFailed(1), finished(1, 1), judged(1, "pass"), held, was(suspend), complete1), want{suspend, v1alpha1.ReasonCheckFailed, "", nil}},
		"the policy Fail, and a late pass":                     {release(1, onceUnjudged(1), finished(1, 1), judged(1, "pass"), held, was(suspend), complete1), want{success, v1alpha1.ReasonAllPassed, ActionResume, nil}},
		"the policy Fail, after a release that ended":          {release(1, finished(1, 1), judged(1, "done"), complete1, was(success), noVerdict("Fail")), want{success, "", "", nil}},
		"a view of the workload that is behind":                {release(1, starting(1), behind, was(running)), want{running, "", "", nil}},
		"a view that is behind, of a new release":              {release(1, starting(1), behind), want{start, v1alpha1.ReasonReleasePending, "", nil}},
		"nor does deleting it and such a view":                 {release(1, finished(1, 1), judged(1, "pass"), behind, recorded, current, held, complete1), want{suspend, v1alpha1.ReasonCheckLost, "", nil}},
		"a workload whose annotations were taken away":         {release(1, starting(1), unstamped, was(running)), want{running, "", "", nil}},
		"a server that was never asked has refused nothing":    {release(1, starting(1), withServer, after(time.Hour)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"nor has one that is configured now":                   {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonNoServer, t0), after(time.Hour), was(running)), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"an order that was refused stays refused":              {release(1, starting(1), withServer, ordered("False", v1alpha1.ReasonOrderNotAccepted, t0), noVerdict("Fail"), held, was(suspend)), want{suspend, v1alpha1.ReasonOrderNotAccepted, "", nil}},
		"people need no order":                                 {release(1, finished(1, 1), judged(1, "done"), person("pass"), withServer, asked, after(time.Hour), complete1, noVerdict("Hold")), want{success, v1alpha1.ReasonAllPassed, "", nil}},
		"who nobody judged needs one":                          {release(1, finished(1, 1), judged(1, "done"), withServer, asked, complete1), want{start, v1alpha1.ReasonOrderPending, "", nil}},
		"what runs already is not judged":                      {release(1, finished(1, 1), func(in *Input) { in.ChangeWorkload.Spec.Attempt = 0 }), want{success, v1alpha1.ReasonBaseline, "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.in)
			if !got.Deadline.IsZero() && !got.Deadline.After(tc.in.Now) {
				t.Errorf("the deadline %s is over: it would be looked at without end", got.Deadline.Sub(t0))
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

// everyConditionHasAReason checks the status that follows from a decision. A
// decision may keep the reason of Succeeded, which few inputs have.
func everyConditionHasAReason(t *testing.T, in Input, d Decision) {
	t.Helper()
	for _, c := range derive(in, d).Status.Conditions {
		if c.Reason == "" && (c.Type != apis.ConditionSucceeded || d.Reason != "") {
			t.Errorf("condition %s is %s without a reason", c.Type, c.Status)
		}
	}
}

// calling says how far the server was asked about the newest batch.
func calling(stage v1alpha1.Stage, call v1alpha1.Submission, verdicts ...v1alpha1.StageVerdict) func(*Input) {
	return func(in *Input) {
		call.Stage = stage
		status := &in.ChangePods[len(in.ChangePods)-1].Status
		status.Submissions, status.Verdicts = []v1alpha1.Submission{call}, verdicts
	}
}

func TestNoMoreBatchesAreMadeThanAreAskedAboutSoon(t *testing.T) {
	answered := &metav1.MicroTime{Time: t0}
	pass := v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "pass"}
	for name, tc := range map[string]struct {
		// first is what became of the first batch; the others wait to be asked about.
		first func(*Input)
		want  int
	}{
		"all wait":                              {func(*Input) {}, 0},
		"one is being asked about":              {calling(v1alpha1.StagePre, v1alpha1.Submission{}), 0},
		"one is before the judge":               {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}), 1},
		"one was asked about in vain":           {calling(v1alpha1.StagePre, v1alpha1.Submission{Error: &v1alpha1.ServerError{Reason: "Unreachable"}}), 1},
		"one waits for the second stage":        {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}, pass), 0},
		"one is asked about its second stage":   {calling(v1alpha1.StagePost, v1alpha1.Submission{}, pass), 1},
		"one has failed before its first stage": {calling(v1alpha1.StagePre, v1alpha1.Submission{AnsweredTime: answered}, v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "fail"}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(200, finished(1, 200), withServer, orderOpen, judged(1, ""))
			tc.first(&in)
			for n := 2; n <= maxPendingCalls; n++ {
				judged(n, "")(&in)
			}
			if got := len(Decide(in).Batches); got != tc.want {
				t.Errorf("%d batches are made, want %d", got, tc.want)
			}
		})
	}
	if got := len(Decide(release(200, finished(1, 200), withServer, orderOpen)).Batches); got != maxPendingCalls {
		t.Errorf("%d batches are made at first, want %d", got, maxPendingCalls)
	}
	if got := len(Decide(release(200, finished(1, 200))).Batches); got != 200 {
		t.Errorf("%d batches are made where there is no server to wait for, want 200", got)
	}
	in := release(200, finished(1, 200), withServer, orderOpen, percent(10))
	if got := len(Decide(in).Batches); got != 10 {
		t.Errorf("%d batches of 10 %% are made, want 10", got)
	}
}

func TestAStaleViewNeverClaimsAPodTwice(t *testing.T) {
	// The ChangePod of pod 1 is not in the cache yet: its name is, at the server.
	in := release(2, finished(1, 1))
	if got := v1alpha1.ChangePodName("a--x--v", nextIndex(in.ChangePods)); got != "a--x--v--x--1" {
		t.Errorf("the name %s would not collide", got)
	}
}

func TestABatchSaysHowManyThereAreAndWhichIsTheLast(t *testing.T) {
	type is struct {
		N, Total int
		Last     bool
	}
	for name, tc := range map[string]struct {
		in   Input
		want []is
	}{
		"one of ten":                               {release(10, finished(1, 1)), []is{{1, 10, false}}},
		"the last of ten":                          {release(2, finished(1, 2), judged(1, "pass")), []is{{2, 2, true}}},
		"two at once":                              {release(3, finished(1, 2)), []is{{1, 3, false}, {2, 3, false}}},
		"all at once":                              {release(2, finished(1, 2)), []is{{1, 2, false}, {2, 2, true}}},
		"a full batch of 40 per cent":              {release(10, percent(40), finished(1, 4)), []is{{1, 3, false}}},
		"what is left over":                        {release(10, percent(40), finished(1, 10), complete1), []is{{1, 3, false}, {2, 3, false}, {3, 3, true}}},
		"a scale-up adds some":                     {release(12, finished(1, 2), judged(1, "pass")), []is{{2, 12, false}}},
		"a pod more than wanted, not ready":        {release(1, finished(1, 1), starting(2)), []is{{1, 2, false}}},
		"what replaces a pod comes after the last": {release(2, judged(1, "pass"), judged(2, "pass"), finished(2, 3)), []is{{3, 3, true}}},
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
